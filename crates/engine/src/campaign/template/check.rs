//! Refuses templates that could use more memory, stack or time than writing a mail may, before they are compiled.
//!
//! A template engine counts instructions, not bytes: thirty doublings of a text are thirty instructions and a gigabyte. So the
//! syntax tree is walked with an upper bound for every value (`size.rs`), as if every field were as long as fields may be.

use std::collections::HashMap;

use minijinja::machinery::ast::{BinOpKind, Call, CallArg, Expr, ForLoop, Spanned, Stmt, UnaryOpKind};
use minijinja::machinery::{Span, Token, parse, tokenize};

use super::size::{Argument, ESCAPED_FACTOR, Size};
use super::words;

/// The largest value.
const VALUE_BYTES_MAX: u64 = 4 << 20;
/// All values that are there at once.
const MEMORY_BYTES_MAX: u64 = 16 << 20;
/// All values that are made or read while one text is written.
const WORK_BYTES_MAX: u64 = 256 << 20;
/// Lists in lists.
const LIST_DEPTH_MAX: u32 = 4;
/// Loops in loops: each is walked a few times for every walk of the one around it.
const LOOP_DEPTH_MAX: u32 = 3;
/// How often a loop is walked until the sizes of its variables stay as they are.
const LOOP_WALKS_MAX: u32 = 3;
/// The numbers of a `range`.
const RANGE_MAX: i64 = 10_000;
/// The words and signs of one tag. Chains of operators are nested as deep as they are long.
const TAG_TOKENS_MAX: usize = 256;
/// The tags of one text.
const TAGS_MAX: usize = 10_000;
/// The branches of all conditions together: each is nested in the one before it.
const ELIF_MAX: usize = 100;

/// Checks one text of a step; an error says what is wrong, and in which line.
pub(super) fn check(source: &str) -> Result<(), String> {
    check_tokens(source)?;
    let tree =
        parse(source, "template", Default::default(), Default::default()).map_err(|error| words(&error))?;
    let Stmt::Template(template) = &tree else { return Ok(()) };
    Walk::default()
        .template(&template.children)
        .map_err(|Refused { line, why }| format!("{why} (line {line})"))
}

/// Checks what the parser and the compiler would otherwise nest without a limit.
fn check_tokens(source: &str) -> Result<(), String> {
    let (mut tags, mut in_tag, mut elifs) = (0, 0, 0);
    // What is no token is the parser's to tell.
    for (token, span) in tokenize(source, false, Default::default(), Default::default()).map_while(Result::ok)
    {
        let too_many =
            |what: &str, most: usize| Err(format!("{what}, at most {most} (line {})", span.start_line));
        match token {
            Token::VariableStart | Token::BlockStart => {
                (tags, in_tag) = (tags + 1, 0);
                if tags > TAGS_MAX {
                    return too_many("too many tags", TAGS_MAX);
                }
            }
            Token::Ident("elif") => {
                elifs += 1;
                if elifs > ELIF_MAX {
                    return too_many("too many elif branches", ELIF_MAX);
                }
            }
            _ => {}
        }
        in_tag += 1;
        if in_tag > TAG_TOKENS_MAX {
            return too_many("too many words and operators in one tag", TAG_TOKENS_MAX);
        }
    }
    Ok(())
}

/// Why a template is refused, and where.
struct Refused {
    line: u16,
    why: String,
}

fn refuse<T>(span: Span, why: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { line: span.start_line, why: why.into() })
}

#[derive(Default)]
struct Walk<'a> {
    /// The largest value of each variable so far. Scopes are ignored: that only makes it larger.
    variables: HashMap<&'a str, Size>,
    /// How often one of them has become larger.
    growth: u64,
    /// Bytes that are kept: variables, captured text, what loops go through.
    kept: u64,
    /// Bytes that the statement at hand has made.
    made: u64,
    /// Bytes made and read so far.
    work: u64,
    loop_depth: u32,
}

impl<'a> Walk<'a> {
    fn template(mut self, children: &'a [Stmt<'a>]) -> Result<(), Refused> {
        self.statements(children)?;
        if self.work > WORK_BYTES_MAX {
            let why = format!(
                "writing it could take {} bytes of work, at most {WORK_BYTES_MAX}: use fewer or shorter loops",
                self.work
            );
            return Err(Refused { line: 1, why });
        }
        Ok(())
    }

    /// Walks statements, and says how much they write at most.
    fn statements(&mut self, statements: &'a [Stmt<'a>]) -> Result<u64, Refused> {
        let mut written: u64 = 0;
        for statement in statements {
            written = written.saturating_add(self.statement(statement)?);
        }
        Ok(written)
    }

    fn statement(&mut self, statement: &'a Stmt<'a>) -> Result<u64, Refused> {
        self.made = 0;
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitRaw(raw) => Ok(raw.raw.len() as u64),
            Stmt::EmitExpr(emit) => Ok(self.expression(&emit.expr)?.bytes.saturating_mul(ESCAPED_FACTOR)),
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr)?;
                let if_true = self.statements(&condition.true_body)?;
                Ok(if_true.max(self.statements(&condition.false_body)?))
            }
            Stmt::ForLoop(each) => self.for_loop(each),
            Stmt::WithBlock(with) => {
                for (target, value) in &with.assignments {
                    self.set(target, value)?;
                }
                self.statements(&with.body)
            }
            Stmt::Set(set) => {
                self.set(&set.target, &set.expr)?;
                Ok(0)
            }
            Stmt::SetBlock(block) => {
                let written = self.statements(&block.body)?;
                let captured = self.captured(written, block.filter.as_ref(), block.span())?;
                self.assign(&block.target, captured)?;
                Ok(0)
            }
            Stmt::FilterBlock(block) => {
                let written = self.statements(&block.body)?;
                Ok(self
                    .captured(written, Some(&block.filter), block.span())?
                    .bytes
                    .saturating_mul(ESCAPED_FACTOR))
            }
            Stmt::AutoEscape(block) => {
                self.expression(&block.enabled)?;
                self.statements(&block.body)
            }
            Stmt::Do(call) => refuse(call.span(), "templates cannot use \"do\""),
        }
    }

    /// A text that was written into a value, behind its filter.
    fn captured(&mut self, written: u64, filter: Option<&'a Expr<'a>>, span: Span) -> Result<Size, Refused> {
        self.made = 0;
        let captured = self.made_value(Size { may_be_safe: true, ..Size::text(written) }, span)?;
        let captured = match filter {
            None => captured,
            Some(filter) => self.expression_of(filter, Some(captured))?,
        };
        self.keep(span)?;
        Ok(captured)
    }

    fn for_loop(&mut self, each: &'a Spanned<ForLoop<'a>>) -> Result<u64, Refused> {
        if each.recursive {
            return refuse(each.span(), "templates cannot use recursive loops");
        }
        if self.loop_depth == LOOP_DEPTH_MAX {
            return refuse(each.span(), format!("loops are nested too deep, at most {LOOP_DEPTH_MAX}"));
        }
        let through = self.expression(&each.iter)?;
        self.keep(each.span())?;
        self.loop_depth += 1;
        let (work, kept) = (std::mem::take(&mut self.work), self.kept);
        let mut written = 0;
        for walk in 1.. {
            let growth = self.growth;
            (self.work, self.kept) = (0, kept);
            self.assign(&each.target, through.item())?;
            if let Some(filter) = &each.filter_expr {
                self.expression(filter)?;
            }
            written = self.statements(&each.body)?;
            if self.growth == growth {
                break;
            }
            if walk == LOOP_WALKS_MAX {
                return refuse(each.span(), "a variable could grow with every turn of the loop");
            }
        }
        self.loop_depth -= 1;
        self.work = work.saturating_add(self.work.saturating_mul(through.items));
        let otherwise = self.statements(&each.else_body)?;
        Ok(written.saturating_mul(through.items).max(otherwise))
    }

    fn set(&mut self, target: &'a Expr<'a>, value: &'a Expr<'a>) -> Result<(), Refused> {
        self.made = 0;
        let size = self.expression(value)?;
        self.keep(value.span())?;
        self.assign(target, size)
    }

    /// What the statement at hand has made stays.
    fn keep(&mut self, span: Span) -> Result<(), Refused> {
        self.kept = self.kept.saturating_add(std::mem::take(&mut self.made));
        self.check_memory(span)
    }

    fn check_memory(&self, span: Span) -> Result<(), Refused> {
        let bytes = self.kept.saturating_add(self.made);
        if bytes > MEMORY_BYTES_MAX {
            let why = format!(
                "its values could take {bytes} bytes, at most {MEMORY_BYTES_MAX}: use fewer or shorter ones"
            );
            return refuse(span, why);
        }
        Ok(())
    }

    fn assign(&mut self, target: &'a Expr<'a>, size: Size) -> Result<(), Refused> {
        match target {
            Expr::Var(var) if var.id == "loop" => refuse(var.span(), "\"loop\" cannot be set"),
            Expr::Var(var) => {
                let known = self.variables.entry(var.id).or_insert(Size::FIELD);
                let larger = known.or(size);
                if *known != larger {
                    *known = larger;
                    self.growth += 1;
                }
                Ok(())
            }
            Expr::List(list) => list.items.iter().try_for_each(|item| self.assign(item, size.item())),
            other => refuse(other.span(), "only variables can be set"),
        }
    }

    fn expression(&mut self, expr: &'a Expr<'a>) -> Result<Size, Refused> {
        self.expression_of(expr, None)
    }

    /// The size of an expression; `piped` is what a filter without a value of its own is for.
    fn expression_of(&mut self, expr: &'a Expr<'a>, piped: Option<Size>) -> Result<Size, Refused> {
        let span = expr.span();
        let size = match expr {
            Expr::Var(var) => {
                let size = self.variables.get(var.id).copied().unwrap_or(Size::FIELD);
                self.work = self.work.saturating_add(size.bytes);
                return Ok(size);
            }
            Expr::Const(constant) => match constant.value.as_str() {
                Some(text) => Size::text(text.len() as u64),
                None => Size::NUMBER,
            },
            Expr::Slice(slice) => {
                if slice.step.is_some() {
                    return refuse(span, "templates cannot use slices with a step");
                }
                for bound in [&slice.start, &slice.stop].into_iter().flatten() {
                    self.expression(bound)?;
                }
                let sliced = self.expression(&slice.expr)?;
                Size { depth: if sliced.depth > 0 { sliced.depth + 1 } else { 0 }, ..sliced }
            }
            Expr::UnaryOp(unary) => {
                let size = self.expression(&unary.expr)?;
                match unary.op {
                    UnaryOpKind::Not => Size::text(5),
                    UnaryOpKind::Neg => size.or(Size::NUMBER),
                }
            }
            Expr::BinOp(binary) => {
                let (left, right) = (self.expression(&binary.left)?, self.expression(&binary.right)?);
                match binary.op {
                    BinOpKind::ScAnd | BinOpKind::ScOr => left.or(right),
                    BinOpKind::Concat => left.followed_by(right),
                    BinOpKind::Add if left.is_number && right.is_number => Size::NUMBER,
                    BinOpKind::Add if left.depth == 0 && right.depth == 0 => left.followed_by(right),
                    BinOpKind::Add => return refuse(span, "templates cannot add lists"),
                    BinOpKind::Mul => self.product(&binary.left, left, &binary.right, right, span)?,
                    BinOpKind::Sub
                    | BinOpKind::Div
                    | BinOpKind::FloorDiv
                    | BinOpKind::Rem
                    | BinOpKind::Pow
                    | BinOpKind::Eq
                    | BinOpKind::Ne
                    | BinOpKind::Lt
                    | BinOpKind::Lte
                    | BinOpKind::Gt
                    | BinOpKind::Gte
                    | BinOpKind::In => Size::NUMBER,
                }
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr)?;
                for with in &compare.ops {
                    self.expression(&with.expr)?;
                }
                Size::NUMBER
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr)?;
                let if_true = self.expression(&choice.true_expr)?;
                match &choice.false_expr {
                    Some(otherwise) => if_true.or(self.expression(otherwise)?),
                    None => if_true,
                }
            }
            Expr::Filter(filter) => {
                let input = match (&filter.expr, piped) {
                    (Some(input), piped) => self.expression_of(input, piped)?,
                    (None, Some(piped)) => piped,
                    (None, None) => return refuse(span, "a filter needs a value"),
                };
                let arguments = self.arguments(&filter.args, span)?;
                input.filtered(filter.name, &arguments).or_else(|why| refuse(span, why))?
            }
            Expr::Test(test) => {
                self.expression(&test.expr)?;
                self.arguments(&test.args, span)?;
                Size::NUMBER
            }
            Expr::GetAttr(attribute) => {
                let of = self.expression(&attribute.expr)?;
                match &attribute.expr {
                    Expr::Var(var) if var.id == "loop" && self.loop_depth > 0 => Size::NUMBER,
                    _ => of.item(),
                }
            }
            Expr::GetItem(item) => {
                self.expression(&item.subscript_expr)?;
                self.expression(&item.expr)?.item()
            }
            // Its numbers are made one at a time.
            Expr::Call(call) => return self.call(call),
            Expr::List(list) => Size::list(self.each(&list.items)?),
            Expr::Map(map) => {
                let (keys, values) = (self.each(&map.keys)?, self.each(&map.values)?);
                Size::list(keys.into_iter().chain(values))
            }
        };
        self.made_value(size, span)
    }

    fn each(&mut self, items: &'a [Expr<'a>]) -> Result<Vec<Size>, Refused> {
        items.iter().map(|item| self.expression(item)).collect()
    }

    fn arguments(&mut self, arguments: &'a [CallArg<'a>], span: Span) -> Result<Vec<Argument>, Refused> {
        let mut sizes = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let (CallArg::Pos(value) | CallArg::Kwarg(_, value)) = argument else {
                return refuse(span, "templates cannot unpack arguments");
            };
            let constant = match value {
                Expr::Const(constant) => Some(constant.value.clone()),
                _ => None,
            };
            sizes.push(Argument { size: self.expression(value)?, constant });
        }
        Ok(sizes)
    }

    /// A text that is repeated, or a product of numbers.
    fn product(
        &self,
        left: &Expr<'_>,
        left_size: Size,
        right: &Expr<'_>,
        right_size: Size,
        span: Span,
    ) -> Result<Size, Refused> {
        let times = |expr: &Expr<'_>| match expr {
            Expr::Const(constant) => u64::try_from(constant.value.clone()).ok(),
            _ => None,
        };
        match (times(left), times(right)) {
            _ if left_size.is_number && right_size.is_number => Ok(Size::NUMBER),
            _ if left_size.depth > 0 || right_size.depth > 0 => refuse(span, "templates cannot repeat lists"),
            (Some(times), _) => Ok(right_size.times(times).or(Size::NUMBER)),
            (_, Some(times)) => Ok(left_size.times(times).or(Size::NUMBER)),
            (None, None) => refuse(span, "\"*\" takes a number that is written out"),
        }
    }

    /// Templates can call `range` and `loop.cycle`.
    fn call(&mut self, call: &'a Spanned<Call<'a>>) -> Result<Size, Refused> {
        let arguments = self.arguments(&call.args, call.span())?;
        match &call.expr {
            Expr::Var(var) if var.id == "range" && !self.variables.contains_key("range") => {
                let number = |argument: &Argument| {
                    let value = i64::try_from(argument.constant.clone()?).ok()?;
                    (0..=RANGE_MAX).contains(&value).then_some(value)
                };
                let numbers: Option<Vec<i64>> = arguments.iter().map(number).collect();
                match numbers.as_deref() {
                    Some([to] | [_, to]) => Ok(Size::range(to.unsigned_abs())),
                    _ => refuse(
                        call.span(),
                        format!("\"range\" takes numbers from 0 to {RANGE_MAX} that are written out"),
                    ),
                }
            }
            Expr::GetAttr(attribute) if self.is_loop(&attribute.expr) && attribute.name == "cycle" => {
                let sizes = arguments.iter().map(|argument| argument.size);
                Ok(sizes.reduce(Size::or).unwrap_or(Size::NUMBER))
            }
            _ => refuse(call.span(), "templates can call \"range\" and \"loop.cycle\" only"),
        }
    }

    fn is_loop(&self, expr: &Expr<'_>) -> bool {
        matches!(expr, Expr::Var(var) if var.id == "loop") && self.loop_depth > 0
    }

    /// Counts a value that was made, if it is not too large.
    fn made_value(&mut self, size: Size, span: Span) -> Result<Size, Refused> {
        if size.bytes > VALUE_BYTES_MAX {
            let why = format!(
                "a value could have {} bytes, at most {VALUE_BYTES_MAX}: join or repeat fewer texts",
                size.bytes
            );
            return refuse(span, why);
        }
        if size.depth > LIST_DEPTH_MAX {
            return refuse(span, format!("lists are nested too deep, at most {LIST_DEPTH_MAX}"));
        }
        self.made = self.made.saturating_add(size.bytes);
        self.work = self.work.saturating_add(size.bytes);
        self.check_memory(span)?;
        Ok(size)
    }
}

//! Looks whether a page is well made: every tag closed where it belongs, ids once, inputs labelled, nothing inline.

use std::collections::BTreeSet;

/// Tags that have no end.
const VOID: [&str; 5] = ["meta", "link", "img", "input", "br"];

/// The start tags of a page with the names of their attributes, without anything that a caller could have said.
pub fn shape(page: &str) -> Vec<String> {
    tags(page)
        .into_iter()
        .map(|tag| {
            let names: Vec<&str> = tag.attributes.iter().map(|(name, _)| *name).collect();
            format!("{} {}", tag.name, names.join(" "))
        })
        .collect()
}

/// Panics over what is wrong with a page.
pub fn check(page: &str) {
    assert!(page.starts_with("<!doctype html>\n<html lang=\"en\""), "{page}");
    let (mut open, mut ids) = (Vec::new(), BTreeSet::new());
    let all = tags(page);
    for tag in &all {
        if let Some(name) = tag.name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed where it is not open: {page}");
        } else if !VOID.contains(&tag.name) {
            open.push(tag.name);
        }
        for (name, value) in &tag.attributes {
            assert!(!name.starts_with("on") && *name != "style", "inline {name} in {page}");
            assert!(*name != "id" || ids.insert(*value), "id {value} twice in {page}");
        }
        assert!(tag.name != "script" || tag.get("src").is_some(), "inline script in {page}");
        assert!(tag.name != "img" || tag.get("alt").is_some(), "a picture without words in {page}");
    }
    assert!(open.is_empty(), "never closed: {open:?} in {page}");
    let labels: BTreeSet<&str> =
        all.iter().filter(|tag| tag.name == "label").filter_map(|tag| tag.get("for")).collect();
    for tag in all.iter().filter(|tag| tag.name == "input" && tag.get("type") != Some("hidden")) {
        assert!(tag.get("id").is_some_and(|id| labels.contains(id)), "an input without a label in {page}");
    }
}

struct Tag<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

impl Tag<'_> {
    fn get(&self, wanted: &str) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    }
}

/// All tags. As strict as a template can be: quoted values, and no `<` that begins no tag.
fn tags(page: &str) -> Vec<Tag<'_>> {
    let mut tags = Vec::new();
    let mut rest = page.split_once('\n').map_or("", |(_, rest)| rest);
    while let Some((_, after)) = rest.split_once('<') {
        let (inside, further) = after.split_once('>').expect("a tag that ends");
        let (name, mut said) = inside.split_once(' ').unwrap_or((inside, ""));
        let is_name = name.trim_start_matches('/').bytes().all(|byte| byte.is_ascii_alphanumeric());
        assert!(is_name && name != "/" && !name.is_empty(), "not a tag: <{inside}>");
        let mut attributes = Vec::new();
        while !said.is_empty() {
            let end = said.find([' ', '=']).unwrap_or(said.len());
            let attribute = &said[..end];
            said = &said[end..];
            let mut value = "";
            if let Some(quoted) = said.strip_prefix("=\"") {
                (value, said) = quoted.split_once('"').expect("a value that ends");
            }
            attributes.push((attribute, value));
            said = said.trim_start();
        }
        tags.push(Tag { name, attributes });
        rest = further;
    }
    tags
}

#[test]
fn what_is_badly_made_is_noticed() {
    let whole = |inside: &str| format!("<!doctype html>\n<html lang=\"en\">{inside}</html>");
    check(&whole("<p id=\"a\">b</p>"));
    for bad in [
        "<p>",
        "</p>",
        "<b><i></b></i>",
        "<p onclick=\"x\"></p>",
        "<p style=\"x\"></p>",
        "<script>x</script>",
        "<p id=\"a\"></p><p id=\"a\"></p>",
        "<img src=\"x\">",
        "<input id=\"key\">",
        "a < b",
    ] {
        assert!(std::panic::catch_unwind(|| check(&whole(bad))).is_err(), "{bad}");
    }
}

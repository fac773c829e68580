//! Templates that are written, refused, and bounded.

use super::*;

fn campaign(text: &str) -> Campaign {
    let step = serde_json::json!({ "order": 1, "subject": "Hi {{ first_name }}", "text": text,
        "html": "<p>{{ first_name }}</p>" });
    serde_json::from_value(serde_json::json!({
        "name": "a", "sequence_id": "s", "route": "email", "from": "bob@example.org", "steps": [step]
    }))
    .unwrap()
}

fn short_subject(text: &str) -> Campaign {
    let mut campaign = campaign(text);
    campaign.steps[0].subject = "Hi".to_owned();
    campaign.steps[0].html = None;
    campaign
}

fn prospect(name: &str) -> Prospect {
    serde_json::from_value(serde_json::json!({ "id": "p", "email": "ada@example.org", "first_name": name }))
        .unwrap()
}

#[test]
fn a_mail_says_what_its_prospect_is_called_and_html_is_escaped() {
    let campaign = campaign("Dear {{ first_name }} <{{ email }}>");
    let templates = Templates::new(&campaign).unwrap_or_else(|_| panic!("they can be read"));
    let email = templates.write(&campaign, 1, &prospect("A&B")).unwrap();
    assert_eq!(email.subject, "Hi A&B");
    assert_eq!(email.text.as_deref(), Some("Dear A&B <ada@example.org>"));
    assert_eq!(email.html.as_deref(), Some("<p>A&amp;B</p>"));
}

#[test]
fn what_is_missing_or_endless_or_breaks_out_is_an_error() {
    let check = |text: &str, name: &str, words: &str| {
        let campaign = campaign(text);
        let templates = Templates::new(&campaign).unwrap_or_else(|_| panic!("they can be read"));
        let wrong = templates.write(&campaign, 1, &prospect(name)).unwrap_err();
        assert!(wrong.contains(words), "{wrong}");
    };
    check("{{ last_name }}", "Ada", "step 1, text");
    check("{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}", "Ada", "step 1");
    check("x", "A\r\nBcc: eve@example.org", "subject");
}

#[test]
fn a_template_that_cannot_be_read_is_named() {
    let wrong = Templates::new(&campaign("{{ first_name")).err().unwrap_or_default();
    assert_eq!(wrong[0].field, "steps[0].text");
}

/// Templates that used to take gigabytes, the whole stack, or for ever.
fn hostile() -> Vec<(&'static str, String)> {
    let many = |count: usize, text: &str| text.repeat(count);
    vec![
        ("doubling", format!("{{% set a = 'xxxxxxxx' %}}{}", many(29, "{% set a = a ~ a %}"))),
        ("doubling a field", format!("{}{{{{ first_name }}}}", many(29, "{% set first_name = first_name ~ first_name %}"))),
        ("doubling by plus", format!("{{% set a = 'xxxxxxxx' %}}{}", many(29, "{% set a = a + a %}"))),
        ("doubling in with", format!("{}x{}", many(29, "{% with first_name = first_name ~ first_name %}"), many(29, "{% endwith %}"))),
        ("doubling two names", format!("{{% set a = 'x' %}}{}", many(20, "{% set b = a ~ a %}{% set a = b ~ b %}"))),
        ("doubling captures", format!("{{% set a = 'xxxxxxxx' %}}{}", many(29, "{% set a %}{{ a }}{{ a }}{% endset %}"))),
        ("doubling in branches", format!("{{% set a = 'xxxxxxxx' %}}{}", many(29, "{% if a %}{% set a = a ~ a %}{% endif %}"))),
        ("doubling in a loop", "{% set a = 'x' %}{% for i in range(40) %}{% set a = a ~ a %}{% endfor %}".into()),
        ("growing in a loop", "{% for i in range(9999) %}{% set a = a ~ first_name %}{% endfor %}".into()),
        ("passing it on in a loop", "{% for i in range(99) %}{% set d = c ~ c %}{% set c = b ~ b %}{% set b = d ~ d %}{% endfor %}".into()),
        ("a namespace", "{% set n = namespace(a='x') %}{% for i in range(40) %}{% set n.a = n.a ~ n.a %}{% endfor %}".into()),
        ("a constant product", "{{ 'x' * 4000000000 }}".into()),
        ("a product", "{{ first_name * 99999999 }}".into()),
        ("a product from the left", "{{ 99999999 * first_name }}".into()),
        ("a product of two variables", "{% set n = 99999999 %}{{ first_name * n }}".into()),
        ("a product of attributes", "{% set l = {'a': 'x', 'b': 99999999} %}{{ l.a * l.b }}".into()),
        ("a loop of one's own", "{% set loop = {'a': 'x', 'b': 99999999} %}{{ loop.a * loop.b }}".into()),
        ("products of products", many(6, "{% set a = (a ~ 'x') * 1000 %}")),
        ("a list product", "{{ ([first_name] * 99999999) | join }}".into()),
        ("a sum of lists", format!("{{% set a = [1] %}}{}", many(29, "{% set a = a + a %}"))),
        ("replacing nothing", format!("{{{{ first_name{} }}}}", many(9, " | replace('', first_name)"))),
        ("replacing a letter", format!("{{{{ 'a'{} }}}}", many(9, " | replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaa')"))),
        ("replacing by a name", format!("{{% set f = '' %}}{{{{ 'a'{} }}}}", many(9, " | replace(f, 'aaaaaaaaaaaaaaaa')"))),
        ("joining", format!("{{{{ first_name{} }}}}", many(9, " | join(first_name)"))),
        ("escaping", format!("{{{{ \"'\"{} }}}}", many(40, " | escape | string"))),
        ("indenting", "{{ first_name | indent(4000000000) }}".into()),
        ("indenting by keyword", "{{ first_name | indent(width=4000000000) }}".into()),
        ("indenting often", format!("{{{{ first_name{} }}}}", many(9, " | indent(100, true, true)"))),
        ("formatting", "{{ '%4000000000d' | format(1) }}".into()),
        ("chains", "{{ [1] | chain([2]) | batch(999999999, 'x') | list }}".into()),
        ("slices", "{{ 'ab' | slice(999999999, 'x') | list }}".into()),
        ("mapping", "{{ ['x'] | map('indent', 4000000000) | join }}".into()),
        ("pretty printing", format!("{{{{ first_name{} }}}}", many(30, " | pprint"))),
        ("filter blocks", "{% filter indent(4000000000) %}{{ first_name }}{% endfilter %}".into()),
        ("many large values", format!("{{% set a = first_name * 200 %}}{}", (0..2_000).map(|i| format!("{{% set v{i} = a ~ '{i}' %}}")).collect::<String>())),
        ("many large captures", format!("{{% set a = first_name * 200 %}}{}", (0..2_000).map(|i| format!("{{% set v{i} %}}{{{{ a }}}}{{% endset %}}")).collect::<String>())),
        ("copying for ever", "{% set a = first_name * 200 %}{% for i in range(9999) %}{% if a ~ i == 'y' %}x{% endif %}{% endfor %}".into()),
        ("comparing for ever", "{% set a = first_name * 200 %}{% set b = first_name * 200 %}{% for i in range(9999) %}{% if a == b %}{% endif %}{% endfor %}".into()),
        ("a captured loop", "{% set a %}{% for i in range(9999) %}{{ first_name }}{% endfor %}{% endset %}{{ a }}".into()),
        ("nested lists", format!("{{% set a = [] %}}{}{{{{ a }}}}", many(9_000, "{% set a = [a] %}"))),
        ("nested slices", format!("{{% set a = [1] %}}{}{{{{ a }}}}", many(9_000, "{% set a = a[0:] %}"))),
        ("nested lists at once", format!("{{{{ {}{} }}}}", many(100, "["), many(100, "]"))),
        ("nested brackets", format!("{{{{ {}1{} }}}}", many(9_000, "("), many(9_000, ")"))),
        ("nested blocks", format!("{}{}", many(9_000, "{% if 1 %}"), many(9_000, "{% endif %}"))),
        ("nested loops", format!("{}{}", many(9, "{% for i in range(9999) %}"), many(9, "{% endfor %}"))),
        ("a long sum", format!("{{{{ 1{} }}}}", many(100_000, "+1"))),
        ("a long chain of texts", format!("{{{{ first_name{} }}}}", many(100_000, "~first_name"))),
        ("a long chain of filters", format!("{{{{ first_name{} }}}}", many(100_000, "|trim"))),
        ("a long chain of attributes", format!("{{{{ first_name{} }}}}", many(100_000, ".a"))),
        ("a long chain of signs", format!("{{{{ {}1 }}}}", many(100_000, "-"))),
        ("a long chain of nots", format!("{{{{ {}1 }}}}", many(100_000, "not "))),
        ("a long chain of choices", format!("{{{{ 1{} }}}}", many(100_000, " if 1 else 1"))),
        ("many branches", format!("{{% if 0 %}}{}{{% endif %}}", many(9_000, "{% elif 0 %}"))),
        ("many tags", many(200_000, "{{a}}")),
        ("a recursive loop", "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}".into()),
        ("a range without end", "{{ range(-9223372036854775807, 9223372036854775807) }}".into()),
        ("a range of a field", "{% for i in range(first_name | int) %}x{% endfor %}".into()),
        ("a backward slice", "{{ first_name[0:9:-1] }}".into()),
        ("unpacked arguments", "{{ first_name | indent(*[4000000000]) }}".into()),
        ("debug", "{{ debug() }}".into()),
    ]
}

#[test]
fn a_template_that_could_grow_without_bound_is_refused_by_step_and_line() {
    for (name, text) in hostile() {
        let problems = Templates::new(&campaign(&text)).err();
        let problem = problems.as_ref().and_then(|problems| problems.first());
        assert_eq!(
            problem.map(|problem| problem.field.as_str()),
            Some("steps[0].text"),
            "{name}: {problems:?}"
        );
    }
    let doubling = &hostile()[0].1;
    let problems = Templates::new(&campaign(doubling)).err().unwrap_or_default();
    assert!(problems[0].problem.contains("at most 4194304"), "{problems:?}");
}

#[test]
fn what_passes_the_check_writes_within_its_bounds() {
    // Fields that are as long as they may be, of what grows most in each filter.
    let longest = [
        "'".repeat(4_000),
        "\u{130}".repeat(2_000),
        "\n".repeat(4_000),
        "\u{1}".repeat(4_000),
        " a".repeat(2_000),
    ];
    for text in [
        "{{ first_name | replace('a', 'bb') | upper | title | e }}",
        "{{ first_name | indent(8) | lines | join(', ') }}",
        "{% for word in first_name | split %}{{ loop.index }}. {{ word | capitalize }} {% endfor %}",
        "{% for c in first_name %}{{ c }}{% endfor %}",
        "{% set greeting = 'Dear ' ~ first_name %}{{ greeting }}, {{ greeting | lower }}",
        "{% set block %}{{ first_name }}{{ first_name }}{% endset %}{{ block }}{{ block | replace('a', 'b') }}",
        "{{ first_name | list | sort | unique | reverse }}",
        "{{ [first_name, first_name] ~ [first_name] }}",
        "{% for i in range(500) %}{{ first_name }}{% endfor %}",
        "{{ first_name[:3] }} {{ first_name | default('there', true) }} {{ first_name | length * 3 }}",
        "{% filter upper %}{{ first_name }}{% endfilter %}",
        "{% for i in range(200) %}{% for j in range(200) %}x{% endfor %}{% endfor %}",
    ] {
        let campaign = short_subject(text);
        let templates = Templates::new(&campaign).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        for name in &longest {
            match templates.write(&campaign, 1, &prospect(name)) {
                Ok(email) => assert!(email.text.unwrap_or_default().len() <= OUTPUT_BYTES_MAX, "{text}"),
                Err(wrong) => assert!(wrong.starts_with("step 1, "), "{text}: {wrong}"),
            }
        }
    }
}

#[test]
fn what_is_written_has_a_limit() {
    let campaign = short_subject("{% for i in range(1000) %}{{ first_name }}{% endfor %}");
    let templates = Templates::new(&campaign).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    assert!(templates.write(&campaign, 1, &prospect("Ada")).is_ok());
    let wrong = templates.write(&campaign, 1, &prospect(&"x".repeat(4_000))).unwrap_err();
    assert!(wrong.contains("step 1, text: would have more than"), "{wrong}");
}

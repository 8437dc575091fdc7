"""The texts that the program shows to its users, read from its sources.

These are the string literals and the help in Rust outside of tests, the strings of the YAML that the
program embeds, the alerts, and NOTES.txt of the chart."""

import re
import tempfile
import unittest
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

ALERTS = "manifests/components/monitoring/prometheus-rule.yaml"
NOTES = "manifests/chart/templates/NOTES.txt"
# A text with fewer words is a name, a heading or a part of a sentence.
FEWEST = 4
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    | [bc]?r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)
    | [bc]?"(?P<string>(?:[^"\\]|\\.)*)"
    | b?'(?:\\u\{[^}]*\}|\\x..|\\.|[^'\\])'
    | (?P<code>[\w:.]+|\S)""",
    re.DOTALL | re.VERBOSE,
)
ESCAPE = re.compile(r"\\(?:(\n)\s*|u\{(\w*)\}|x(\w\w)|(.))")
ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
# A value of a template, or of `format!`, where doubled braces are braces.
PLACEHOLDER = re.compile(r"\{\{ .*? \}\}|(\{)\{|(\})\}|\{[^{}]*\}")
CONDITION = re.compile(r"\{\{-? *(?:if|else|end)\b.*?\}\}")
IS_TEST = re.compile(r"\[(?:cfg\((?:test|(?:all|any)\((?:.*,)?test)\b|(?:[\w:]+::)?test\])")
HAS_HELP = re.compile(r"\[derive\(.*\b(?:Parser|Args|Subcommand|ValueEnum)\b")
# The strings of YAML: after its comments those in quotes, blocks, and those without quotes.
# A hyphen before a key must be a space.
YAML = re.compile(
    r"""(?:^|(?<=\s))\#.*
    | (?<=[\s\[{(])"(?P<double>(?:[^"\\]|\\.)*)"
    | (?<=[\s\[{(])'(?P<single>(?:[^']|'')*)'
    | ^(?P<in>[ ]*)\w+:[ ]\|-?\n(?P<program>(?:(?P=in)[ ]+.*\n|\n)+)
    | ^(?P<of>[ ]*)(?!expr)\w+:[ ]>-?\n(?P<folded>(?:(?P=of)[ ]+.*\n|\n)+)
    | ^(?P<at>[ ]*)\w+:[ ]+(?P<plain>[^\s"'\[{&*|>\#].*(?:\n(?P=at)[ ]+[^\s\#].*)*)
    | [{,][ ]*\w+:[ ](?P<flow>[^\s"'\[{&*][^,}\n]*)""",
    re.MULTILINE | re.VERBOSE,
)


class Token(NamedTuple):
    """A token of Rust: "code", or a "string" or "doc" with its line."""

    kind: str
    text: str
    line: int


def unescape(text):
    def one(match):
        newline, unicode, byte, letter = match.groups()
        return "" if newline else ESCAPED.get(letter, letter) if letter else chr(int(unicode or byte, 16))

    return ESCAPE.sub(one, text)


def tokens_of(source):
    line, read = 1, 0
    for match in TOKEN.finditer(source):
        comment, raw, string, code = match.group("comment", "raw", "string", "code")
        if code:
            yield Token("code", code, line)
            continue
        line, read = line + source.count("\n", read, match.start()), match.start()
        if raw is not None or string is not None:
            yield Token("string", unescape(string) if raw is None else raw, line)
        elif comment and comment.startswith("///"):
            yield Token("doc", comment[3:].removeprefix(" "), line)


def end(tokens, at):
    """The index after the item at `at`, or of the bracket that closes around it."""
    depth = 0
    for index in range(at, len(tokens)):
        sign = tokens[index].text if tokens[index].kind == "code" else ""
        depth += (sign in ("(", "[", "{")) - (sign in (")", "]", "}"))
        if depth < 0:
            return index
        if depth == 0 and sign in (";", "}"):
            return index + 1
    return len(tokens)


def attributes(tokens, at):
    """The text of each attribute at `at`, and the index after them."""
    texts = []
    while tokens[at].text == "#" and tokens[at + 1].text == "[":
        after = end(tokens, at + 2) + 1
        texts.append("".join(token.text for token in tokens[at + 1 : after]))
        at = after
    return texts, at


def without_tests(tokens):
    """The tokens outside of tests, and the names or paths of the modules that are tests."""
    kept, modules, at = [], [], 0
    while at < len(tokens):
        texts, item = attributes(tokens, at)
        if any(IS_TEST.match(text) for text in texts):
            at = end(tokens, item)
            if tokens[item].text == "mod" and tokens[at - 1].text == ";":
                modules += [tokens[item + 1].text, *(text[6:-1] for text in texts if text.startswith("[path="))]
        else:
            after = max(item, at + 1)
            kept += tokens[at:after]
            at = after
    return kept, modules


def help_of(tokens):
    """The documentation that clap prints: a line and a text for each command, option and value."""
    printed = set()
    for at in range(len(tokens)):
        texts, item = attributes(tokens, at)
        if any(HAS_HELP.match(text) for text in texts):
            while at > 0 and tokens[at - 1].kind == "doc":
                at -= 1
            printed.update(range(at, end(tokens, item)))
    for is_help, group in groupby(enumerate(tokens), lambda one: one[1].kind == "doc" and one[0] in printed):
        if is_help:
            docs = [token for _, token in group]
            yield docs[0].line, "\n".join(token.text for token in docs)


def strings_of(tokens):
    """The strings with their lines, and the files that are embedded."""
    strings, embedded = [], []
    for at in (at for at, token in enumerate(tokens) if token.kind == "string"):
        before = [token.text for token in tokens[max(at - 3, 0) : at]]
        if before == ["include_str", "!", "("]:
            embedded.append(tokens[at].text)
        elif before[1:] != ["reason", "="]:
            strings.append((tokens[at].line, tokens[at].text))
    return strings, embedded


def yaml(source):
    """The strings of a YAML file with their lines; of a program in it, the strings of the program."""
    for match in YAML.finditer(re.sub(r"(?m)^( *)- ", r"\1  ", source)):
        kind = match.lastgroup
        text = re.sub(" #.*", "", match[kind]) if kind == "plain" else match[kind] if kind else ""
        line = source.count("\n", 0, match.start(kind or 0)) + 1
        if kind == "program":
            for string in re.finditer(r'"((?:[^"\\\n]|\\.)*)"', text):
                yield line + text.count("\n", 0, string.start()), unescape(string[1])
        elif text:
            yield line, unescape(text) if kind == "double" else text.replace("''", "'")


def shown(text):
    """The text with one word for each placeholder."""
    return PLACEHOLDER.sub(lambda match: match[1] or match[2] or "code", text)


def is_sentence(text):
    return len(re.findall(r"(?:^|\s)\W*[A-Za-z]", text)) >= FEWEST


def read(root):
    """Each text with a sentence, with its file and line."""
    files, tests = [], set()
    for path in sorted([*root.glob("src/**/*.rs"), *root.glob("crates/*/src/**/*.rs")]):
        tokens, modules = without_tests([*tokens_of(path.read_text())])
        folder = path.parent if path.stem in ("mod", "lib", "main") else path.with_suffix("")
        tests.update(file for name in modules for file in (path.parent / name, folder / name, folder / f"{name}.rs"))
        files.append((path, tokens))
    found, others = [(root / NOTES, 1, CONDITION.sub("\n\n", (root / NOTES).read_text()))], {root / ALERTS}
    for path, tokens in files:
        if tests.isdisjoint([path, *path.parents]):
            strings, embedded = strings_of(tokens)
            others.update((path.parent / name).resolve() for name in embedded if name.endswith(".yaml"))
            found += [(path, *text) for text in [*strings, *help_of(tokens)]]
    found += [(path, *text) for path in sorted(others) for text in yaml(path.read_text())]
    shown_texts = ((f"{path.relative_to(root)}:{line}", shown(text)) for path, line, text in found)
    return [(source, text) for source, text in shown_texts if is_sentence(text)]


class TextsOfSources(unittest.TestCase):
    """Each text is found, and a wrong reading of what is beside it loses it or finds another."""

    def rust(self, source):
        tokens, _ = without_tests([*tokens_of(source)])
        return [text for _, text in strings_of(tokens)[0]]

    def test_strings(self):
        self.assertEqual(self.rust('a("It runs.", "It \\"ends\\" \\u{2014}\\n")'), ["It runs.", 'It "ends" \u2014\n'])
        self.assertEqual(self.rust('a("It runs \\\n    on \\\\.")'), ["It runs on \\."])
        self.assertEqual(self.rust('a(r"\\d", r#"It "runs"."#, "")'), ["\\d", 'It "runs".', ""])

    def test_code_beside_strings(self):
        for code in ("'\"'", "'\\''", "b'\"'", "'\\u{22}'", "fn a<'a>(a: &'a str)"):
            self.assertEqual(self.rust(f'{code} "It runs."'), ["It runs."], code)

    def test_comments(self):
        self.assertEqual(self.rust('// "It\n/* a " */ "https://a" //! "a\n/// "b'), ["https://a"])

    def test_tests(self):
        for item in (
            "#[cfg(test)] mod tests { fn a() { b('}', \"}\"); \"It\"; } }",
            '#[cfg(all(test, unix))] #[path = "a"] const A: [&str; 1] = ["It"];',
            '#[test] fn a() -> [u8; 3] { "It" }',
            '#[tokio::test] async fn a() { "It" }',
        ):
            self.assertEqual(self.rust(f'"a" {item} "b"'), ["a", "b"], item)
        self.assertEqual(self.rust('#[cfg(not(test))] fn a() { "It" }'), ["It"])
        self.assertEqual(self.rust('#[cfg(unix)] fn a() { "It" }'), ["It"])

    def test_modules_of_tests(self):
        source = '#[cfg(test)]\n#[path = "a_tests.rs"]\nmod tests;\nmod b;'
        self.assertEqual(without_tests([*tokens_of(source)])[1], ["tests", "a_tests.rs"])

    def test_attributes(self):
        source = '#[error("It runs.")] #[allow(a, reason = "b")] struct A;'
        self.assertEqual(self.rust(source), ["It runs."])

    def test_embedded(self):
        tokens, _ = without_tests([*tokens_of('include_str!("a.yaml") #[cfg(test)] include_str!("b.yaml");')])
        self.assertEqual(strings_of(tokens), ([], ["a.yaml"]))

    def test_help(self):
        option = "    /// Run it.\n    ///\n    /// It runs.\n    #[arg(long)]\n    a: A,\n"
        source = f"/// Not read.\nfn a() {{}}\n/// Options.\n#[derive(Args, Debug)]\nstruct A {{\n{option}}}\n/// Nor this.\n"
        self.assertEqual([*help_of([*tokens_of(source)])], [(3, "Options."), (6, "Run it.\n\nIt runs.")])
        self.assertEqual([*help_of([*tokens_of(source.replace("Args", "Clone"))])], [])

    def test_yaml(self):
        source = (
            "# It's a \"comment\"\n- a: It runs\n    on. # here\n  b: \"It \\\"ends\\\".\"\n  c: 'It''s'\n"
            "  d: {e: It stays, f: [\"It\"]}\n  g: >-\n    It\n    goes.\n  h: |-\n    size(a) == 1 ? \"It waits.\" : b\n"
            "  i: https://a/#b\n  expr: >-\n    sum by (a)\n"
        )
        self.assertEqual(
            [(line, " ".join(text.split())) for line, text in yaml(source)],
            [(2, "It runs on."), (4, 'It "ends".'), (5, "It's"), (6, "It stays"), (6, "It"), (8, "It goes."),
             (11, "It waits."), (12, "https://a/#b")],
        )  # fmt: skip

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for name, source in {
                "src/main.rs": "mod a;\n#[cfg(test)]\nmod tests;",
                "src/tests.rs": '"It runs in tests."',
                "src/tests/b.rs": '"It runs in tests too."',
                "src/a.rs": '#[cfg(test)]\n#[path = "a_tests.rs"]\nmod tests;\nconst A: &str = include_str!("a.yaml");',
                "src/a_tests.rs": 'include_str!("b.yaml"); "It runs in tests too."',
                "src/a.yaml": "a: It runs in YAML.",
                "src/b.yaml": "a: It runs in tests too.",
                "crates/c/src/lib.rs": '"It runs in {}." "Not this."',
                ALERTS: "a: It runs in alerts.",
                NOTES: "{{- if .A }}\nIt runs in {{ .A }}.\n{{- end }}\n",
            }.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(source)
            self.assertEqual(
                [(source, text.strip()) for source, text in read(root)],
                [
                    (f"{NOTES}:1", "It runs in code."),
                    ("crates/c/src/lib.rs:1", "It runs in code."),
                    (f"{ALERTS}:1", "It runs in alerts."),
                    ("src/a.yaml:1", "It runs in YAML."),
                ],
            )

    def test_placeholders(self):
        self.assertEqual(shown("{} {a:?} {{b}} {{ .C d }}"), "code code {b} code")

    def test_sentences(self):
        self.assertTrue(is_sentence("code runs on it"))
        self.assertTrue(is_sentence('It "runs" (on it)'))
        for text in ("It runs on", "it-runs-on-it", "1 2 3 4"):
            self.assertFalse(is_sentence(text), text)

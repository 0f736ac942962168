"""`muster validate`: every problem with its place, for any input, in bounded time."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.api.manifests import check
from muster.cli import exits, main
from muster.views.documents import ManifestError, read
from tests.build.examples import examples

GOOD = """\
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata:
  name: gang
spec:
  schedulingPolicy:
    gang:
      minCount: 3
"""
BAD = GOOD.replace("minCount: 3", "minCount: -1").replace("gang\nspec", "Gang\nspec")


@pytest.fixture
def validate(capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.run(["validate", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.fixture
def a_file(tmp_path: Path):
    def write(text: str | bytes, name: str = "a.yaml") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    return write


def test_a_good_file_is_told_so_beside_the_output(validate, a_file):
    assert validate("-f", a_file(GOOD)) == (exits.OK, "", "No problems found in 1 manifest.\n")
    assert validate("-f", a_file(GOOD), "-o", "json") == (exits.OK, "[]\n", "")


def test_each_problem_has_file_line_object_field_and_message(validate, a_file):
    path = a_file(f"---\n{GOOD}---\n{BAD}")
    code, out, _ = validate("-f", path)
    assert code == exits.NO
    name, count = out.splitlines()
    assert name.startswith(f'{path}:14: podgroup/gang: metadata.name: Invalid value: "Gang"')
    text = "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"
    assert count == f"{path}:18: podgroup/gang: {text}"


def test_problems_for_programs(validate, a_file):
    path = a_file(BAD)
    code, out, _ = validate("-f", path, "-o", "json")
    assert code == exits.NO
    first = json.loads(out)[0]
    assert (first["file"], first["line"], first["object"], first["field"]) == (
        path,
        4,
        "podgroup/gang",
        "metadata.name",
    )
    code, out, _ = validate("-f", a_file(GOOD), "-o", "json")
    assert json.loads(out) == []


def test_json_has_lines_too(validate, a_file):
    path = a_file(
        '{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",\n\t"metadata": {"name": "a"},\n"spec": {}}',
        "a.json",
    )
    _, out, _ = validate("-f", path)
    assert out.startswith(f"{path}:3: podgroup/a: spec.schedulingPolicy: ")


def test_json_that_is_not_yaml_is_read_all_the_same(validate, a_file):
    path = a_file('{"kind":"Pod","apiVersion":"v1","metadata":{"name":"\\ud83d\\ude00"}}\n{"kind":"Pod"}', "a.json")
    _, out, _ = validate("-f", path)
    assert f"{path}:1: pod/😀: metadata.name" in out
    assert f"{path}:2: pod/?: apiVersion: Required value" in out


def test_a_directory_is_its_manifests(validate, a_file, tmp_path):
    a_file(BAD, "b.yml")
    a_file(BAD, "c.json")
    a_file("not: [yaml", "notes.txt")
    a_file(BAD, "deep/d.yaml")
    _, out, _ = validate("-f", str(tmp_path))
    assert {line.split(":")[0] for line in out.splitlines()} == {str(tmp_path / "b.yml"), str(tmp_path / "c.json")}
    _, out, _ = validate("-R", "-f", str(tmp_path))
    assert str(tmp_path / "deep" / "d.yaml") in out


def test_standard_input_is_a_file(validate, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    code, out, _ = validate("-f", "-")
    assert code == exits.NO
    assert out.startswith("<stdin>:4: podgroup/gang: metadata.name")


def test_a_list_is_the_objects_in_it(validate, a_file):
    item = "\n".join(f"  {line}" for line in BAD.splitlines())
    path = a_file(f"apiVersion: v1\nkind: List\nitems:\n-{item[1:]}\n- 3\n")
    _, out, _ = validate("-f", path)
    assert out.splitlines()[1].startswith(f"{path}:11: podgroup/gang: spec.schedulingPolicy.gang.minCount")
    assert f"{path}:12: Invalid value: null: a manifest must be an object" in out


def test_kinds_without_rules_are_named_only_on_request(validate, a_file):
    path = a_file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    code, out, err = validate("-f", path)
    assert (code, out) == (exits.OK, "")
    assert err == "No problems found in 1 manifest; 1 of kinds that have no rules here (-v names them).\n"
    code, _, err = validate("-v", "-f", path)
    assert code == exits.OK
    assert "configmap/c: there are no rules for this kind" in err


def test_nothing_to_check_is_said(validate, tmp_path):
    code, _, err = validate("-f", str(tmp_path))
    assert code == exits.OK
    assert "No manifests found" in err


def test_one_bad_file_does_not_hide_the_next(validate, a_file):
    broken, bad = a_file("a: [1\nb: 2", "a.yaml"), a_file(BAD, "b.yaml")
    _, out, _ = validate("-f", broken, "-f", bad, "-f", "/nonexistent.yaml")
    assert f"{broken}:2: not valid YAML" in out
    assert f"{bad}:4: " in out
    assert "/nonexistent.yaml:1: cannot be read: No such file or directory" in out


def test_a_field_that_is_not_written_is_placed_at_what_is(validate, a_file):
    path = a_file(
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: Workload\nmetadata: {name: w}\n"
        "spec:\n  podGroupTemplates:\n  - name: a\n"
    )
    _, out, _ = validate("-f", path)
    assert out.startswith(f"{path}:6: workload/w: spec.podGroupTemplates[0].schedulingPolicy")


# --- bad input -------------------------------------------------------------------------------------

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: [1\nb: 2\n", 2, "not valid YAML: while parsing a flow sequence"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
        (b"ok: 1\nbad: \xff\n", 2, "not UTF-8 text: byte 0xff at offset 11"),
        (b"a: \x00\n", 1, "not valid YAML"),
        ('{"a": 1,\n"b": }', 2, "must be set"),
        ('{"a": 1,\n"b" "c"}', 2, "not valid JSON or YAML"),
        (LAUGHS, 6, "more than 500000 values"),
        ("a: &a\n  b: *a\n", 2, "the alias *a contains itself"),
        ("a: *nope\n", 1, "the alias *nope is not defined"),
        ("[" * 300 + "]" * 300, 1, "nested more than 200 levels deep"),
        ("{a: " * 300 + "}" * 300, 1, "nested more than 200 levels deep"),
        ("? [a, b]\n: c\n", 1, "a key must be text"),
        ("a: &x y\n*x : c\n", 2, "a key must be text, not an alias"),
        ("a: !!python/object:os.system x\n", 1, "unsupported tag"),
        ("a: !mine x\n", 1, "unsupported tag"),
        ("a: .inf\n", 1, "not a number that JSON can hold"),
        ("a: .nan\n", 1, "not a number that JSON can hold"),
        ("a: 1e999\n", 1, "out of range"),
        (f"a: {'9' * 5000}\n", 1, "too long"),
        ("<<: 3\n", 1, "the value of << must be an object"),
        ("%YAML 9.9\n---\na: 1\n", 1, "not valid YAML"),
    ],
)
def test_bad_input_has_a_clear_message_with_its_place(validate, a_file, text, place, words):
    path = a_file(text)
    code, out, err = validate("-f", path)
    assert code == exits.NO
    assert "Traceback" not in out + err
    if words == "must be set":
        assert "apiVersion" in out
    else:
        assert out.startswith(f"{path}:{place}: ")
        assert words in out


def test_duplicate_keys_are_told_with_their_line(validate, a_file):
    path = a_file(GOOD + "  schedulingPolicy: {basic: {}}\n")
    code, out, _ = validate("-f", path)
    assert code == exits.NO
    assert out == f"{path}:9: podgroup/gang: duplicate key 'schedulingPolicy'\n"


def test_duplicate_keys_in_a_list_are_told(validate, a_file):
    path = a_file(
        "kind: List\napiVersion: v1\nitems:\n- kind: Pod\n  kind: Pod\n  apiVersion: v1\n  metadata: {name: a}\n"
    )
    code, out, _ = validate("-f", path)
    assert (code, out) == (exits.NO, f"{path}:5: duplicate key 'kind'\n")


def test_a_tree_of_depth_fifty_is_a_problem_like_others(validate, a_file):
    tree = "{name: t, schedulingPolicy: {basic: {}}, podGroupTemplates: [{name: l, schedulingPolicy: {basic: {}}}]}"
    for level in range(50):
        tree = f"{{name: c{level}, schedulingPolicy: {{basic: {{}}}}, compositePodGroupTemplates: [{tree}]}}"
    head = "apiVersion: scheduling.k8s.io/v1beta1\nkind: Workload\nmetadata: {name: w}\n"
    text = f"{head}spec: {{compositePodGroupTemplates: [{tree}]}}\n"
    path = a_file(text)
    code, out, _ = validate("-f", path)
    assert code == exits.NO
    where = f"{path}:4: workload/w: spec.compositePodGroupTemplates[0]"
    assert out == f'{where}: Invalid value: "c49": maximum template hierarchy depth is 4\n'


def test_a_huge_file_is_refused_before_it_is_read(validate, tmp_path):
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    code, out, _ = validate("-f", str(path))
    assert (code, out) == (exits.NO, f"{path}:1: larger than 16 MiB; split it into smaller files\n")


# --- kubectl's scalars -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", True),
        ("yes", True),
        ("y", True),
        ("Off", False),
        ("N", False),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("1e3", 1000),
        ("1_000", 1000),
        ("08", 8),
        ("-5", -5),
        ("+5", 5),
        ("1.5", 1.5),
        ("3.0", 3),
        ("~", None),
        ("", None),
        ("1:30", "1:30"),
        ("2026-11-15", "2026-11-15"),
        ("18446744073709551616", 18446744073709551616.0),
        ("0xFFFFFFFFFFFFFFFFFF", float(0xFFFFFFFFFFFFFFFFFF)),
        ("-", [None]),
        (".5", 0.5),
        ("'on'", "on"),
        ('"1"', "1"),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("!!int '5'", 5),
        ("|\n    text\n", "text\n"),
        ("-x", "-x"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_a_scalar_means_what_kubectl_makes_of_it(text: str, value: object):
    (document,) = read("f", f"a: {text}\n".encode() if value != [None] else b"a:\n-\n")
    assert document.value == {"a": value}
    assert type(document.value["a"]) is type(value)


def test_keys_become_text():
    (document,) = read("f", b"1: a\ntrue: b\n~: c\n1.5: d\n")
    assert document.value == {"1": "a", "true": "b", "null": "c", "1.5": "d"}


def test_aliases_and_merges_are_followed():
    text = b"base: &b {x: 1, w: 2}\none: {<<: *b, w: 3}\ntwo: {<<: [*b, {z: 4}]}\nname: &n hi\nagain: *n\n"
    (document,) = read("f", text)
    assert document.value["one"] == {"x": 1, "w": 3}
    assert document.value["two"] == {"x": 1, "w": 2, "z": 4}
    assert document.value["again"] == "hi"


def test_empty_documents_are_skipped():
    assert [document.line for document in read("f", b"---\n---\na: 1\n---\n# nothing\n")] == [3]
    assert list(read("f", b"")) == []
    assert next(read("f", b"\xef\xbb\xbfa: 1\n")).value == {"a": 1}


# --- any bytes at all ------------------------------------------------------------------------------

MARKS = ("{", "}", "[", "]", ":", ": ", ",", "\n", "- ", "  ", "---\n", "&a ", "*a", "<<", "!!int ", "'", '"', "|", ">")
WORDS = ("apiVersion: scheduling.k8s.io/v1beta1\n", "kind: PodGroup\n", "kind: Workload\n", "spec:\n", "metadata:\n")
ODDS = (
    "name: x",
    "  schedulingPolicy: {gang: {minCount: 0}}\n",
    "podGroupTemplates",
    "items",
    "0x",
    "1e9",
    "~",
    "é",
    "%",
)
PIECES = st.sampled_from((*MARKS, *WORDS, *ODDS))


@settings(max_examples=examples(1500), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60) | st.lists(PIECES, max_size=18).map(lambda parts: "".join(parts).encode()))
def test_no_bytes_make_the_reader_crash(data: bytes):
    try:
        documents = list(read("f", data))
    except ManifestError as error:
        documents = []
        refusal = (error.line, error.message)
    else:
        refusal = (1, "")
    for document in documents:
        for error in check(document.value) or ():
            assert document.line_of(error.field) >= 1
    assert refusal[0] >= 1

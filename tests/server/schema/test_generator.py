"""The generator reads declarations as Kubernetes writes them, and the checked-in tables are its output."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools/schema"))

import generate  # noqa: E402
import gotypes  # noqa: E402
import protos  # noqa: E402

TYPES = """\
package v1

// A marker above the type's own comment counts too.
// +structType=atomic

// Thing is a thing.
type Thing struct {
\tmetav1.TypeMeta `json:",inline"`
\t// Name of it.
\t// +optional
\t// +default="x"
\tName *string `json:"name,omitempty" protobuf:"bytes,2,opt,name=name"`
\tParts []Part `json:"parts" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,3,rep,name=parts"` // more
}

type ExtraValue []string
"""

PROTO = """\
package k8s.io.api.things.v1;

// Thing is a thing.
message Thing {
  // optional string commented = 9;
  optional string name = 2;
  repeated Part parts = 3;
  map<string, .k8s.io.api.core.v1.Sort> sorts = 4;
}
"""


def test_structs_are_read_with_tags_and_markers(tmp_path: Path):
    (tmp_path / "types.go").write_text(TYPES)

    package = gotypes.read([tmp_path / "types.go"])
    thing = package.structs["Thing"]
    embedded, name, parts = thing.fields

    assert thing.markers == {"structType": ["atomic"]}
    assert "inline" in embedded.options
    assert (name.json_name, name.number, name.pointer) == ("name", 2, True)
    assert gotypes.literal_default(name.markers) == "x"
    assert (parts.tags["patchStrategy"], parts.tags["patchMergeKey"]) == ("merge", "name")
    assert package.string_slices == {"ExtraValue"}


def test_messages_are_read_with_numbers_types_and_shapes(tmp_path: Path):
    (tmp_path / "generated.proto").write_text(PROTO)

    thing = protos.read(tmp_path / "generated.proto")["Thing"]

    assert sorted(thing) == [2, 3, 4]
    assert (thing[2].type, thing[2].shape) == ("string", "")
    assert (thing[3].type, thing[3].shape) == ("k8s.io.api.things.v1.Part", "[")
    assert (thing[4].type, thing[4].shape) == ("k8s.io.api.core.v1.Sort", "{")


@pytest.mark.e2e
@pytest.mark.skipif(shutil.which("go") is None, reason="no go: the Kubernetes modules cannot be read")
def test_the_checked_in_tables_are_what_the_generator_writes():
    try:
        fresh = generate.tables()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the Kubernetes modules are not here and cannot be fetched: {error.stderr[-200:]}")

    assert generate.TARGET.read_text() == fresh

"""Objects with declared fields, as the evaluator knows them: protobuf messages.

The messages only serve the check of an expression; values stay plain dicts. What protobuf has no field for (a list of
lists, a map of lists, a quantity inside an object) is declared as dyn there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from muster.cel.evaluator import protobuf
from muster.cel.types import ListOf, MapOf, ObjectOf, Opaque, OptionalOf, Type

_ANY = ".google.protobuf.Value"
_WELL_KNOWN = {"timestamp": ".google.protobuf.Timestamp", "duration": ".google.protobuf.Duration"}
_FILES = ("struct", "timestamp", "duration")


def message_pool(types: Iterable[Type]) -> Any:
    """Descriptors of every object type that occurs in these types; None where there is none."""
    found: dict[str, ObjectOf] = {}
    for declared in types:
        for each in _objects(declared, found):
            found[each.name] = each
    if not found:
        return None
    return _build(found)


def _objects(declared: Type, known: dict[str, ObjectOf]) -> Iterator[ObjectOf]:
    match declared:
        case ListOf(element=inner) | MapOf(value=inner) | OptionalOf(element=inner):
            yield from _objects(inner, known)
        case ObjectOf(name=name, fields=fields) if name not in known:
            yield declared
            for inner in (fields or {}).values():
                yield from _objects(inner, known)
        case _:
            return


def _build(objects: dict[str, ObjectOf]) -> Any:
    descriptors, pools = protobuf()
    pool = pools.DescriptorPool()
    for name in _FILES:
        module = __import__(f"google.protobuf.{name}_pb2", fromlist=["DESCRIPTOR"])
        copied = descriptors.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(copied)
        pool.Add(copied)
    packages: dict[str, list[ObjectOf]] = {}
    for each in objects.values():
        packages.setdefault(each.name.rpartition(".")[0], []).append(each)
    file = descriptors.FileDescriptorProto(
        name="declared.proto",
        syntax="proto2",
        dependency=[f"google/protobuf/{name}.proto" for name in _FILES],
    )
    if len(packages) != 1:
        raise ValueError(f"the object types of one environment must share one package: {sorted(packages)}")
    file.package = next(iter(packages))
    for each in objects.values():
        _message(descriptors, file.message_type.add(name=each.name.rpartition(".")[2]), each)
    pool.Add(file)
    return pool


def _message(descriptors: Any, message: Any, declared: ObjectOf) -> None:
    for number, (name, inner) in enumerate((declared.fields or {}).items(), start=1):
        field = message.field.add(name=name, number=number, json_name=f"f{number}")
        _field(descriptors.FieldDescriptorProto, message, field, inner)


def _field(form: Any, message: Any, field: Any, declared: Type) -> None:
    field.label = form.LABEL_OPTIONAL
    match declared:
        case ListOf(element=inner) if _single(inner):
            _plain(form, field, inner)
            field.label = form.LABEL_REPEATED
        case MapOf(value=inner) if _single(inner) and declared.key.name == "string" and not _taken(message, field.name):
            entry = message.nested_type.add(name=_entry_name(field.name))
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, type=form.TYPE_STRING, label=form.LABEL_OPTIONAL)
            _plain(form, entry.field.add(name="value", number=2, label=form.LABEL_OPTIONAL), inner)
            field.type, field.type_name = form.TYPE_MESSAGE, entry.name
            field.label = form.LABEL_REPEATED
        case _:
            _plain(form, field, declared)


def _single(declared: Type) -> bool:
    return not isinstance(declared, ListOf | MapOf)


def _entry_name(field: str) -> str:
    """The name that protobuf prescribes for the entries of a map."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def _taken(message: Any, field: str) -> bool:
    """Whether another map of the message has that name already: a_b and aB."""
    return any(each.name == _entry_name(field) for each in message.nested_type)


def _plain(form: Any, field: Any, declared: Type) -> None:
    scalars = {
        "bool": form.TYPE_BOOL,
        "int": form.TYPE_INT64,
        "uint": form.TYPE_UINT64,
        "double": form.TYPE_DOUBLE,
        "string": form.TYPE_STRING,
        "bytes": form.TYPE_BYTES,
    }
    if declared.name in scalars:
        field.type = scalars[declared.name]
        return
    field.type = form.TYPE_MESSAGE
    if isinstance(declared, ObjectOf):
        field.type_name = f".{declared.name}"
    elif isinstance(declared, Opaque):
        field.type_name = _ANY
    else:
        field.type_name = _WELL_KNOWN.get(declared.name, _ANY)

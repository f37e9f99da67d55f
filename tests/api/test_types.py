"""The client's types are those of the daemon's answers."""

import json
import subprocess
import sys
import typing

import pytest

from memctl import types
from memd.api.dispatch import HANDLERS
from memd.api.methods import METHODS
from memd.workspace.open import OpenWorkspace
from memd.workspace.workspaces import Workspaces
from tools.generate import fields_of, structs


@pytest.mark.parametrize("kind", structs())
def test_each_struct_has_a_type_with_the_same_keys(kind):
    known = getattr(types, kind.__name__)
    assert known.__optional_keys__ == {field.name for field in fields_of(kind) if field.optional}
    assert known.__required_keys__ == {field.name for field in fields_of(kind) if not field.optional}


@pytest.mark.parametrize("name", METHODS)
def test_a_function_takes_and_answers_what_the_table_says(name):
    """The table is what the dispatcher, the documentation and the clients read."""
    method = METHODS[name]
    hints = typing.get_type_hints(HANDLERS[name])
    assert hints["return"] == method.result
    assert method.params in hints.values()
    assert (OpenWorkspace in hints.values()) == (method.runs != "apart")
    assert (Workspaces in hints.values()) == (method.runs in {"apart", "opened"})


def test_importing_the_types_loads_nothing_else():
    code = "import json, sys, memctl.types; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert {"memd", "msgspec", "msgpack", "pydantic"}.isdisjoint(loaded)

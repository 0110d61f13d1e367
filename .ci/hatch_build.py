"""Makes what a wheel has and the checkout has not: the JSON schema, and virtual time for programs.

That is compiled where there is a compiler and glibc. Elsewhere the wheel is one for any platform, and virtual time for
programs is compiled on first use if that is possible. `AGENTPROC_PURE_WHEEL=true` makes such a wheel on purpose.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = "pytest_agentproc/clock/preload"


class CustomBuildHook(BuildHookInterface[Any]):
    """Add the schema to a wheel, and the coordinator and the shim, with which it is for this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the schema and compile, unless the install is an editable one."""
        if version != "standard":
            return
        self._made = tempfile.TemporaryDirectory()
        name, text = _schema(Path(self.root))
        Path(self._made.name, name).write_text(text, "utf-8")
        build_data["force_include"][f"{self._made.name}/{name}"] = f"pytest_agentproc/{name}"
        if os.environ.get("AGENTPROC_PURE_WHEEL") == "true" or platform.libc_ver()[0] != "glibc":
            return
        builder = _builder(Path(self.root))
        if not builder.has_compiler():
            return
        builder.build_coordinator(Path(self._made.name))
        for name in ("coordinator", "shim.so"):
            build_data["force_include"][f"{self._made.name}/{name}"] = (
                f"{_FOLDER}/{builder.COMPILED_FOLDER_NAME}/{name}"
            )
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _schema(root: Path) -> tuple[str, str]:
    """Give the name of the schema's file, and its text: of what the package needs, the schema needs PyYAML only."""
    sys.path.insert(0, str(root))
    try:
        from pytest_agentproc.scenario import SCHEMA_FILE_NAME, format_schema
    finally:
        sys.path.remove(str(root))
    return SCHEMA_FILE_NAME, format_schema()


def _builder(root: Path) -> Any:
    """Load the one module that can compile: the package itself has dependencies that a build has not."""
    sys.path.insert(0, str(root))
    try:
        spec = importlib.util.spec_from_file_location("_agentproc_build", root / _FOLDER / "_build.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(root))
    return module

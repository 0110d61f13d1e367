"""Compiles virtual time for programs into the wheel where there is a compiler; else it is compiled on first use."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = "pytest_agentproc/clock/preload"


class CustomBuildHook(BuildHookInterface[Any]):
    """Add the coordinator and the shim to a wheel, which is then for this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the install is an editable one."""
        if version != "standard" or sys.platform != "linux":
            return
        builder = _builder(Path(self.root))
        if not builder.has_compiler():
            return
        self._made = tempfile.TemporaryDirectory()
        builder.build_coordinator(Path(self._made.name))
        for name in ("coordinator", "shim.so"):
            build_data["force_include"][f"{self._made.name}/{name}"] = (
                f"{_FOLDER}/{builder.COMPILED_FOLDER_NAME}/{name}"
            )
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


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

"""The clients' packages: their versions, and where they are. Installs each once, outside the tree; imports none.

They stay in the user's cache folder (`$XDG_CACHE_HOME` or `~/.cache`, there `pytest-agentproc-clients`). Each set of
versions has one folder, so that only the first run needs a registry. The variable `AGENTPROC_CLIENT_VERSIONS` has other
versions as JSON, by package: the tests then run with these.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "ALONE",
    "NPM",
    "PYPI",
    "VERSIONS_VARIABLE",
    "fill_cached_folder",
    "find_node",
    "find_program_beside",
    "install_from_npm",
    "install_from_pypi",
    "install_from_pypi_without_clis",
]

PYPI = {
    "claude-agent-sdk": "0.2.187",
    "agent-client-protocol": "0.12.1",
    "pexpect": "4.9.0",
    "ptyprocess": "0.7.0",
}
"""The Python clients."""

ALONE = {"openai-codex": "0.163.0", "codex-app-server-client": "0.1.0"}
"""The Python clients that need a real CLI: they are installed without it. All else that they need, `PYPI` brings."""

NPM = {
    "claude-agent-sdk": {"@anthropic-ai/claude-agent-sdk": "0.3.332"},
    "acp-sdk": {"@agentclientprotocol/sdk": "2.4.0"},
    "codex-sdk": {"@openai/codex-sdk": "0.163.0"},
    "opencode-sdk": {"@opencode-ai/sdk": "1.18.33"},
    "pi-coding-agent": {"@earendil-works/pi-coding-agent": "1.6.0", "node": "22.19.0"},
    "claude-agent-acp-0.20.2": {"@zed-industries/claude-agent-acp": "0.20.2"},
    "claude-agent-acp-0.23.1": {"@zed-industries/claude-agent-acp": "0.23.1"},
    "claude-agent-acp-0.101.0": {"@agentclientprotocol/claude-agent-acp": "0.101.0"},
    "pi-subagents": {"pi-subagents": "0.34.0"},
    "yaml-language-server": {"yaml-language-server": "2.0.0"},
    "claude": {"@anthropic-ai/claude-code": "2.1.332"},
    "codex": {"@openai/codex": "0.171.0"},
    "gemini": {"@google/gemini-cli": "0.61.0"},
    "opencode": {"opencode-ai": "1.18.33"},
    "node-pty": {"node-pty": "1.1.0"},
}
"""The Node clients, an editor's server and the real CLIs, each in a folder of its own: they need other versions of the
same."""

_WHOLE = ("claude", "codex", "gemini", "opencode", "pi-coding-agent", "node-pty")
"""The packages whose optional parts and scripts are needed: the program itself is one, or a script makes a part."""

VERSIONS_VARIABLE = "AGENTPROC_CLIENT_VERSIONS"
"""The variable of the environment that has other versions."""

_LIMIT = 300
"""Real seconds for one installation."""
_UNREACHABLE = (
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "ENETUNREACH",
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Connection refused",
    "Read timed out",
    "ConnectTimeoutError",
)
"""The errors of a package manager that cannot reach its registry; any other error fails the test."""


def install_from_pypi() -> Path:
    """Give the folder of the Python clients and all they need, as an entry of `sys.path`."""
    return _install_python_packages("pypi", PYPI)


def install_from_pypi_without_clis() -> Path:
    """Give the folder of the Python clients without their real CLIs."""
    return _install_python_packages("alone", ALONE, "--no-deps")


def _install_python_packages(name: str, packages: dict[str, str], *options: str) -> Path:
    pins = [f"{package}=={version}" for package, version in _choose_versions(packages).items()]
    key = [*pins, f"{sys.version_info[0]}.{sys.version_info[1]}"]

    def install(folder: Path) -> list[str]:
        return [sys.executable, "-m", "pip", "install", "--quiet", *options, "--target", str(folder), *pins]

    return fill_cached_folder(name, key, install)


def _choose_versions(packages: Mapping[str, str]) -> dict[str, str]:
    others = json.loads(os.environ.get(VERSIONS_VARIABLE, "{}"))
    return {package: others.get(package, version) for package, version in packages.items()}


def install_from_npm(name: str, packages: Mapping[str, str] | None = None) -> Path:
    """Give the folder in which a Node client is installed: it holds `node_modules`.

    Args:
        name: a key of `NPM`.
        packages: other packages and versions than those there.
    """
    chosen = _choose_versions(NPM[name]) if packages is None else packages
    pins = [f"{package}@{version}" for package, version in chosen.items()]

    def install(folder: Path) -> list[str]:
        quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
        parts = () if name in _WHOLE else ("--ignore-scripts", "--omit=optional")
        return ["npm", "install", *quiet, *parts, "--prefix", str(folder), *pins]

    find_node()
    return fill_cached_folder(name, pins, install)


def find_program_beside(name: str, file: str) -> Path:
    """Give a file of `programs` that stands beside a Node client, as Node looks for packages where a program is."""
    find_node()
    here, there = Path(__file__).parent / "programs" / file, install_from_npm(name) / file
    if not there.exists() or there.read_bytes() != here.read_bytes():
        shutil.copyfile(here, there)
    return there


def find_node() -> str:
    """Give the path of Node; without it, and npm, there is no way to the registry."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed, so the npm registry cannot be reached")
    return found


def fill_cached_folder(name: str, pins: list[str], command: Callable[[Path], list[str]]) -> Path:
    """Give a folder of the cache; the first caller fills it, all others wait for that.

    Args:
        name: the begin of its name.
        pins: all that decides what is in it.
        command: gives the command that fills an empty folder.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pytest-agentproc-clients"
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"{name}-{hashlib.sha256(repr(pins).encode()).hexdigest()[:12]}"
    with base.joinpath(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made = Path(tempfile.mkdtemp(prefix="new-", dir=base))
            try:
                _install(command(made), pins)
                made.chmod(0o755)
                made.rename(folder)
            finally:
                shutil.rmtree(made, ignore_errors=True)
    return folder


def _install(command: list[str], pins: list[str]) -> None:
    completed = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
    if completed.returncode == 0:
        return
    said = completed.stderr + completed.stdout
    reason = next((word for word in _UNREACHABLE if word in said), None)
    if reason is not None:
        pytest.skip(f"the registry of {', '.join(pins)} cannot be reached: {reason}")
    pytest.fail(f"{' '.join(command)} failed:\n{said}", pytrace=False)

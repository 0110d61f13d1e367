"""Looks at objects of other people's code: a tracer, a module, a plugin, what a hook gave. Decides nothing.

Such an object may lack every attribute, may name a class that is not its own, and may raise at any look. A proxy of a
web framework raises outside a request, for example. Here a look never raises, and never has a proxy load its object.
"""

from __future__ import annotations

from inspect import unwrap
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "find_code",
    "find_exit_of_pytest",
    "find_globals_name",
    "find_module_name",
    "format_foreign_value",
    "get_class_namespace",
    "get_module_namespace",
    "is_exit_of_pytest",
    "is_real_instance",
    "list_classes",
    "read_attribute",
    "unwrap_function",
]


def read_attribute(thing: object, name: str, default: Any = None) -> Any:
    """Give an attribute, or the default if the object lacks it or raises."""
    try:
        return getattr(thing, name, default)
    except Exception:  # noqa: BLE001  # a foreign class may do what it likes
        return default


def is_real_instance(thing: object, kinds: type | tuple[type, ...]) -> bool:
    """Say whether an object is of a class, or of a class derived from it, whatever its `__class__` says."""
    return issubclass(type(thing), kinds)


# A metaclass may hide these, and a lazy module would load at any other access.
_get_mro = type.__dict__["__mro__"].__get__
_get_class_namespace = type.__dict__["__dict__"].__get__
_get_module_namespace = vars(ModuleType)["__dict__"].__get__


def list_classes(thing: object) -> tuple[type, ...]:
    """Give the class of an object and the classes that it derives from."""
    found: tuple[type, ...] = _get_mro(type(thing))
    return found


def get_class_namespace(kind: type) -> Mapping[str, Any]:
    """Give the names of a class, without those of the classes that it derives from."""
    found: Mapping[str, Any] = _get_class_namespace(kind)
    return found


def get_module_namespace(module: ModuleType) -> dict[str, Any]:
    """Give the names of a module, and do not have a lazy module load."""
    found: dict[str, Any] = _get_module_namespace(module)
    return found


def find_globals_name(space: dict[str, Any]) -> str:
    """Give the name that a module's global names say; empty: they say none, or it is no text."""
    name = dict.get(space, "__name__")
    return name if type(name) is str else ""


def unwrap_function(thing: Any) -> Any:
    """Give the function in wrappers, or the object itself if it is none, or its wrappers have no end."""
    try:
        return unwrap(thing)
    except Exception:  # noqa: BLE001  # a mock makes another wrapper at each look, for example
        return thing


def find_code(thing: object) -> CodeType | None:
    """Give the code of a function, or of the function in wrappers; None: there is none."""
    code = read_attribute(unwrap_function(thing), "__code__")
    return code if type(code) is CodeType else None


def format_foreign_value(thing: object) -> str:
    """Show an object as its repr does, or say what that raised."""
    try:
        return repr(thing)
    except Exception as error:  # noqa: BLE001  # a foreign class may do what it likes
        return f"a {type(thing).__name__} whose repr raised {type(error).__name__}"


def find_exit_of_pytest(error: BaseException) -> BaseException | None:
    """Give the exception of `pytest.exit`, alone or out of a group; None: it is another.

    It ends the session, and is no mistake of who raises it. pytest's other outcomes, such as that of `pytest.fail`, are
    no `Exception`, so nobody takes them for a mistake.
    """
    if isinstance(error, BaseExceptionGroup):
        return next((found for each in error.exceptions if (found := find_exit_of_pytest(each)) is not None), None)
    return error if (find_module_name(error), type(error).__name__) == ("_pytest.outcomes", "Exit") else None


def is_exit_of_pytest(error: BaseException) -> bool:
    """Say whether an exception is that of `pytest.exit`, or a group with one."""
    return find_exit_of_pytest(error) is not None


def find_module_name(thing: object) -> str:
    """Give the name of the module in which a function or a class is defined; empty: it does not say."""
    name = read_attribute(thing, "__module__")
    return name if type(name) is str else ""

"""A plugin of pytest: Triton's interpreter without what takes it a third of its time.

Whenever a kernel or a function in it is called, it looks through all members of `triton.language` for those to replace.
Their names are always the same, and a kernel replaces them for the functions in it.
"""

import inspect
from functools import cache

from triton.language.core import is_builtin
from triton.runtime import interpreter


@cache
def builtin_names(package: object) -> list[str]:
    return [name for name, member in inspect.getmembers(package) if is_builtin(member)]


def patch_builtin(package: object, *further: object) -> None:
    names = builtin_names(package)
    if names and not is_builtin(getattr(package, names[0])):
        return  # the kernel that calls this function has replaced them
    for name in names:
        member = getattr(package, name)
        if is_builtin(member):
            interpreter._patch_attr(package, name, member, *further)


interpreter._patch_builtin = patch_builtin

"""A plugin of pytest: Triton's interpreter without what takes it half of its time.

Whenever a kernel or a function in it is called, it looks through all members of `triton.language` for those to replace.
Their names are always the same, and a kernel replaces them for the functions in it. And for every value it makes anew
what depends on its type or its shape alone.
"""

import inspect
from functools import cache

import triton.language as tl
from triton.language.core import is_builtin
from triton.runtime import interpreter


@cache
def builtin_names(package: object) -> list[str]:
    return [name for name, member in inspect.getmembers(package) if is_builtin(member)]


def patch_builtin(package: object, *further: object) -> None:
    for name in builtin_names(package):
        member = getattr(package, name)
        if is_builtin(member):
            interpreter._patch_attr(package, name, member, *further)


@cache
def languages_of(function: object) -> list[object]:
    return [value for value in function.__globals__.values() if value is tl or value is tl.core]


def patch_lang(function: object) -> object:
    if any(is_builtin(language.load) for language in languages_of(function)):
        return original_patch_lang(function)
    return None  # the kernel that calls this function has replaced them


def np_dtype(kind: object) -> object:
    name = kind.scalar.name
    if name not in np_dtypes:
        np_dtypes[name] = original_np_dtype(kind)
    return np_dtypes[name]


np_dtypes: dict[str, object] = {}
original_patch_lang, original_np_dtype = interpreter._patch_lang, interpreter._get_np_dtype
interpreter._patch_builtin = patch_builtin
interpreter._patch_lang = patch_lang
interpreter._get_np_dtype = np_dtype

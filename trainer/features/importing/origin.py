"""Where tables come from, which decides how a person says what is what in them."""

from enum import Enum


class Origin(Enum):
    """Files that are imported; a file that is read as it is, which takes no options; or arrays in memory."""

    IMPORT = "import"
    FILE = "file"
    ARRAYS = "arrays"

    def column(self, role: str) -> str:
        """What names the column of a role (``labels``); nothing for arrays, each of which is an argument."""
        flag = f"--{role.removesuffix('s')}-column"
        return {
            Origin.IMPORT: flag,
            Origin.FILE: f"`headsmith import FILE {flag} NAME --out FOLDER`, whose folder can be read",
            Origin.ARRAYS: "",
        }[self]

    def split(self, split: str) -> str:
        """What gives the rows of a split."""
        return {
            Origin.IMPORT: f"{split}=FILE",
            Origin.FILE: f"{split}=FILE to `headsmith import`, whose folder can be read",
            Origin.ARRAYS: f"a mapping with {split} as `features` and `labels`",
        }[self]

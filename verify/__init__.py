"""Check certificates of least-cost recourse: exact arithmetic, standard library (numpy, if it is there).

Written from ``docs/certificate_spec_v2.md``; "section" in these files means a section there.
"""

import os
import sys


def shadowed() -> str | None:
    """Return a file that would be imported in place of one of Python's own modules or numpy, or None."""
    known = {"numpy", *sys.stdlib_module_names}
    for folder in sys.path:
        if os.path.realpath(folder) == os.path.realpath(os.path.dirname(os.__file__)):
            break
        for name in sorted(os.listdir(folder or ".")) if os.path.isdir(folder or ".") else ():
            module, dot, _ = name.partition(".")
            inside = os.path.join(folder, name, "__init__.py")
            if module in known and (dot or os.path.exists(inside)):
                if dot and not name.endswith((".py", ".pyc", ".so", ".pyd")):
                    continue
                return os.path.join(folder, name)
    return None


# Python imports this file first where the checker is run as a program, and sys.argv is then still ["-m", ...]
if getattr(sys, "argv", [""])[:1] == ["-m"] and (found := shadowed()) is not None:
    sys.stderr.write(
        f"verify: {found!a} would be imported in place of the module of that name: "
        "run python -P -m verify, or start elsewhere\n"
    )
    raise SystemExit(2)

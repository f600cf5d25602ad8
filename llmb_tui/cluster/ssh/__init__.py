"""SSH connections to a login node: settings, host keys, logins and commands.

Paramiko imports invoke for its own parser of `Match exec`, which this program does not use. That import takes as long
as the rest of paramiko, so it is blocked here.
"""

import sys

if "invoke" not in sys.modules:
    sys.modules["invoke"] = None  # type: ignore[assignment]
    try:
        import paramiko  # noqa: F401 - later imports get this module
    finally:
        del sys.modules["invoke"]

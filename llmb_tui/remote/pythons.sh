# Each Python on the login node: `python NAME VERSION`, or `bare NAME VERSION` if it cannot make an environment; and each
# tool that can provide one: `tool NAME`. Run by a batch.
for name in python3.12 python3.13 python3.11 python3.10 python3; do
    command -v "$name" >/dev/null 2>&1 && limited 5 "$name" -c '
import sys
try:
    import ensurepip
    kind = "python"
except ImportError:
    kind = "bare"
print(kind, sys.argv[1], "%d.%d.%d" % sys.version_info[:3])' "$name"
done
for name in uv conda mamba; do command -v "$name" >/dev/null 2>&1 && echo "tool $name"; done

# Modules that provide a Python, one per line. `module` is a function that only some shells have from the start.
command -v module >/dev/null 2>&1 || for file in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh \
    /usr/share/lmod/lmod/init/sh /usr/share/Modules/init/sh; do
    [ -r "$file" ] && . "$file" && break
done
command -v module >/dev/null 2>&1 && module -t avail python 2>&1 | grep -i '^python' | head -n 20

/* TEST DOUBLE of NVIDIA's Pyxis, a plugin of Slurm (SPANK). It starts no container.
 *
 * sbatch, salloc and srun accept its options. A step with --container-image gets a root directory of its own: the
 * system's directories of the node, an empty rest, and the bind mounts that were asked for, wherever they shall be.
 * The image must be a squashfs file by its first bytes; nothing of it is used. `python` in there is the rig's.
 * What it says when something is wrong, Pyxis and Enroot say.
 *
 * gcc -shared -fPIC -o spank_pyxis.so pyxis.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN(pyxis, 1);

enum { IMAGE, MOUNTS, WORKDIR, ENV, MOUNT_HOME, NO_MOUNT_HOME, IGNORED };

#define ROOT "/mnt" /* where the new root is put together, in the task's own mount namespace */
#define STAND_INS "/run/rig/container"
#define OPT "/run/rig/opt" /* where it is there, the image's /opt, which can only be read */
#define IMAGE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static char *given[IGNORED + 1];
static int failed;

static int note(int which, const char *argument, int remote)
{
    (void)remote;
    free(given[which]);
    given[which] = strdup(argument ? argument : "");
    return 0;
}

static struct spank_option options[] = {
    {"container-image", "[USER@][REGISTRY#]IMAGE[:TAG]|PATH", "[pyxis] the image to use for the container filesystem. "
     "(TEST DOUBLE: the file is checked, no container is started)", 1, IMAGE, note},
    {"container-mounts", "SRC:DST[:FLAGS][,SRC:DST...]", "[pyxis] bind mount[s] inside the container.", 1, MOUNTS, note},
    {"container-workdir", "PATH", "[pyxis] working directory inside the container", 1, WORKDIR, note},
    {"container-env", "NAME[,NAME...]", "[pyxis] names of environment variables to override with the host "
     "environment", 1, ENV, note},
    {"container-mount-home", NULL, "[pyxis] bind mount the user's home directory.", 0, MOUNT_HOME, note},
    {"no-container-mount-home", NULL, "[pyxis] do not bind mount the user's home directory", 0, NO_MOUNT_HOME, note},
    {"container-name", "NAME", "[pyxis] name to use for saving and loading the container (ignored)", 1, IGNORED, note},
    {"container-save", "PATH", "[pyxis] Save the container state to a squashfs file (ignored)", 1, IGNORED, note},
    {"container-remap-root", NULL, "[pyxis] ask to be remapped to root inside the container (ignored)", 0, IGNORED, note},
    {"no-container-remap-root", NULL, "[pyxis] do not remap to root inside the container", 0, IGNORED, note},
    {"container-entrypoint", NULL, "[pyxis] execute the entrypoint from the container image (ignored)", 0, IGNORED, note},
    {"no-container-entrypoint", NULL, "[pyxis] do not execute the entrypoint", 0, IGNORED, note},
    {"container-entrypoint-log", NULL, "[pyxis] print the output of the entrypoint script (ignored)", 0, IGNORED, note},
    {"container-writable", NULL, "[pyxis] make the container filesystem writable", 0, IGNORED, note},
    {"container-readonly", NULL, "[pyxis] make the container filesystem read-only (ignored)", 0, IGNORED, note},
    {"container-unshare", "NS[,NS...]", "[pyxis] unshare additional namespaces (ignored)", 1, IGNORED, note},
};

int slurm_spank_init(spank_t spank, int count, char **words)
{
    (void)count, (void)words;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
            return -1;
    return 0;
}

/* Split "SRC:DST:FLAGS" in place; a missing DST is SRC. 0: there is no SRC. */
static int split_mount(char *text, char **source, char **target, char **flags)
{
    *source = strsep(&text, ":");
    *target = strsep(&text, ":");
    *flags = text ? text : "";
    if (!*target)
        *target = *source;
    return **source && **target;
}

static int check_image(const char *path)
{
    char magic[4] = "";
    FILE *file;
    const char *wrong = "No such file or directory";

    if (*path != '/' && *path != '.') {
        slurm_error("pyxis: failed to import docker image: %s", path);
        slurm_error("pyxis: printing enroot log file:");
        slurm_error("pyxis:     [INFO] Querying registry for permission grant");
        slurm_error("pyxis:     curl: (6) Could not resolve host: nvcr.io");
        return -1;
    }
    file = fopen(path, "r");
    if (file) {
        size_t got = fread(magic, 1, sizeof magic, file);
        fclose(file);
        if (got == sizeof magic && !memcmp(magic, "hsqs", sizeof magic))
            return 0;
        wrong = "Invalid image format";
    }
    slurm_error("pyxis: child %d failed with error code: 1", (int)getpid());
    slurm_error("pyxis: failed to create container filesystem for image: %s", path);
    slurm_error("pyxis: printing enroot log file:");
    slurm_error("pyxis:     [ERROR] %s: %s", wrong, path);
    return -1;
}

static int check_mounts(const char *list)
{
    char *copy = strdup(list), *rest = copy, *entry, *source, *target, *flags;
    int result = 0;

    while (!result && (entry = strsep(&rest, ","))) {
        if (!*entry)
            continue;
        if (!split_mount(entry, &source, &target, &flags)) {
            slurm_error("pyxis: --container-mounts: invalid format: %s", list);
            result = -1;
        } else if (*source == '/' && access(source, F_OK)) {
            slurm_error("pyxis: --container-mounts: source path does not exist: %s", source);
            result = -1;
        }
    }
    free(copy);
    return result;
}

/* Once on each node, as the user. Slurm hears of a failure from each task, as with Pyxis. */
int slurm_spank_user_init(spank_t spank, int count, char **words)
{
    (void)spank, (void)count, (void)words;
    if (given[IMAGE] && (check_image(given[IMAGE]) || (given[MOUNTS] && check_mounts(given[MOUNTS]))))
        failed = 1;
    return 0;
}

/* Make what is missing of a path below the new root; the last part is a directory or an empty file. */
static int make_target(const char *path, int is_directory)
{
    char buffer[PATH_MAX];

    snprintf(buffer, sizeof buffer, "%s", path);
    for (char *slash = strchr(buffer + strlen(ROOT) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(buffer, 0777);
        *slash = '/';
    }
    if (is_directory)
        return mkdir(buffer, 0777) && errno != EEXIST ? -1 : 0;
    FILE *file = fopen(buffer, "a");
    return file ? fclose(file) : -1;
}

static int bind_into_root(const char *source, const char *target, const char *flags)
{
    char place[PATH_MAX];
    struct stat found;

    snprintf(place, sizeof place, ROOT "%s%s", *target == '/' ? "" : "/", target);
    if (stat(source, &found) || make_target(place, S_ISDIR(found.st_mode)) ||
        mount(source, place, NULL, MS_BIND | MS_REC, NULL)) {
        slurm_error("pyxis: TEST DOUBLE: cannot mount %s at %s: %s", source, target, strerror(errno));
        return -1;
    }
    if (!strcmp(flags, "ro") || !strncmp(flags, "ro+", 3))
        return mount(NULL, place, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL);
    return 0;
}

static int mount_system(void)
{
    static const char *names[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/proc", "/sys",
                                  "/dev", "/run"};
    static const char *empty[] = {"/tmp", "/workspace", "/opt", "/root", "/home", "/mnt", "/var", "/var/tmp"};
    char link[PATH_MAX], place[PATH_MAX];
    struct stat found;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (lstat(names[i], &found))
            continue;
        if (S_ISLNK(found.st_mode)) {
            ssize_t size = readlink(names[i], link, sizeof link - 1);
            link[size > 0 ? size : 0] = 0;
            snprintf(place, sizeof place, ROOT "%s", names[i]);
            if (symlink(link, place))
                return -1;
        } else if (bind_into_root(names[i], names[i], "")) {
            return -1;
        }
    }
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        snprintf(place, sizeof place, ROOT "%s", empty[i]);
        mkdir(place, 0777);
        chmod(place, 01777);
    }
    if (!access(OPT, F_OK) && bind_into_root(OPT, "/opt", "ro"))
        return -1;
    return bind_into_root(STAND_INS, "/usr/local/bin", "");
}

static int mount_asked(void)
{
    char *copy = strdup(given[MOUNTS]), *rest = copy, *entry, *source, *target, *flags;
    int result = 0;

    while (!result && (entry = strsep(&rest, ",")))
        if (*entry && split_mount(entry, &source, &target, &flags))
            result = bind_into_root(source, target, flags);
    free(copy);
    return result;
}

/* Put the new root together and go there. Slurm goes to the job's directory afterwards (Pyxis changes the root later
 * than we can), so that must be there, if only as an empty one. */
static int change_root(void)
{
    char folder[PATH_MAX / 2], place[PATH_MAX];

    if (!getcwd(folder, sizeof folder))
        strcpy(folder, "/tmp");
    snprintf(place, sizeof place, ROOT "%s", folder);
    return unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
           mount("container", ROOT, "tmpfs", 0, "mode=1777") || mount_system() || (given[MOUNTS] && mount_asked()) ||
           (given[MOUNT_HOME] && bind_into_root("/home", "/home", "")) || make_target(place, 1) || chroot(ROOT) ||
           chdir(folder);
}

/* For each task, as root. */
int slurm_spank_task_init_privileged(spank_t spank, int count, char **words)
{
    mode_t before = umask(0);

    (void)spank, (void)count, (void)words;
    if (given[IMAGE] && !failed && change_root()) {
        slurm_error("pyxis: TEST DOUBLE: couldn't make the root directory: %s", strerror(errno));
        failed = 1;
    }
    umask(before);
    return 0;
}

static int is_named(const char *list, const char *name)
{
    char *copy = strdup(list), *rest = copy, *word;
    int found = 0;

    while ((word = strsep(&rest, ",")))
        found |= !strcmp(word, name);
    free(copy);
    return found;
}

/* For each task, as the user. */
int slurm_spank_task_init(spank_t spank, int count, char **words)
{
    const char *folder = given[WORKDIR] ? given[WORKDIR] : "/workspace";
    int task = 0;

    (void)count, (void)words;
    if (!given[IMAGE])
        return 0;
    if (failed)
        return -1;
    if (chdir(folder)) {
        slurm_error("pyxis: couldn't chdir to %s: %s", folder, strerror(errno));
        return -1;
    }
    spank_setenv(spank, "PWD", folder, 1); /* a shell believes it */
    if (!given[ENV] || !is_named(given[ENV], "PATH"))
        spank_setenv(spank, "PATH", IMAGE_PATH, 1);
    if (spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && task == 0)
        slurm_spank_log("pyxis: TEST DOUBLE: no container was started for image %s", given[IMAGE]);
    return 0;
}

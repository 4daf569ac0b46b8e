# SPDX-License-Identifier: Apache-2.0
# Where Hearth is built: chooses, makes, checks and enters the environment. Sourced by ./dev, which
# sets `repo`. Sets `mode` to one of
#   native     this system is Debian 13 or later; packages come from apt
#   root       a Debian 13 folder in the cache folder, entered by a mount namespace
#   container  an image of podman or docker
# shellcheck shell=bash

. "$repo/tools/dev/mirror.sh"

suite=trixie
packagesFile=$repo/tools/dev/packages.txt
cache=${HEARTH_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hearth}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
rootFolder=$cache/root
setupLog=$cache/setup.log
mode=
lostFile=

say() { echo "dev: $*" >&2; }

# The folder with models and conformance cases, beside the main checkout also for a worktree.
findTestData() {
  local main=$repo common
  if [ -n "${HEARTH_TEST_DATA:-}" ]; then
    (cd "$HEARTH_TEST_DATA" 2>/dev/null && pwd -P) || echo "$HEARTH_TEST_DATA"
    return
  fi
  # In a worktree .git is a file.
  if [ -f "$repo/.git" ] && common=$(git -C "$repo" rev-parse --git-common-dir 2>/dev/null); then
    common=$(cd "$repo" && cd "$common" && pwd -P) && main=${common%/*}
  fi
  [ -d "$main/../shared" ] && (cd "$main/../shared" && pwd -P)
}

packages() {
  local line
  while read -r line; do
    case $line in "" | "#"*) ;; *) printf '%s\n' "$line" ;; esac
  done <"$packagesFile"
}

# What the environment was made from; compared with the stamp that its making leaves.
wantedStamp() {
  local content
  content=$(packages)
  printf 'format 1, %s, %s\n' "$suite" "${content//$'\n'/ }"
}

chooseMode() {
  [ -n "$mode" ] && return
  local ID="" ID_LIKE="" VERSION_ID="" VERSION_CODENAME=""
  # shellcheck disable=SC1091
  [ -r /etc/os-release ] && . /etc/os-release
  hostId=$ID
  hostCodename=$VERSION_CODENAME
  if [ -n "${HEARTH_DEV_INSIDE:-}" ]; then
    mode=native
  elif [ -n "${HEARTH_DEV_MODE:-}" ]; then
    case $HEARTH_DEV_MODE in
      native | root | container) mode=$HEARTH_DEV_MODE ;;
      *)
        say "HEARTH_DEV_MODE is \"$HEARTH_DEV_MODE\", which is none of native, root, container."
        exit 2
        ;;
    esac
  elif [ "$ID" = debian ] && { [ -z "$VERSION_ID" ] || [ "${VERSION_ID%%.*}" -ge 13 ]; }; then
    # Testing and unstable have no version number.
    mode=native
  elif [ "$(id -u)" = 0 ] && [[ " $ID $ID_LIKE " == *" debian "* || $ID == ubuntu ]] &&
    unshare --mount true 2>/dev/null; then
    mode=root
  else
    mode=container
  fi
}

# ensureEnvironment quick|thorough: makes what is missing; thorough also looks for lost files.
ensureEnvironment() {
  chooseMode
  [ -n "${HEARTH_DEV_INSIDE:-}" ] && return 0
  if ! mkdir -p "$cache" || [ ! -w "$cache" ]; then
    say "The cache folder $cache cannot be written; HEARTH_CACHE_DIR names another."
    return 1
  fi
  "${mode}IsReady" "$1" && return 0
  # One setup at a time; a process that dies gives its lock back.
  (
    if ! flock --nonblock 9; then
      say "Another setup is at work in $cache; waiting for it."
      flock 9
    fi
    "${mode}IsReady" "$1" && exit 0
    "${mode}Setup" 9>&-
  ) 9>"$cache/setup.lock" && "${mode}IsReady" quick
}

# runLogged STEP COMMAND...: the command's output goes to the log, whose end is shown on failure.
runLogged() {
  local step=$1 child status
  shift
  say "$step ..."
  echo "== $step: $*" >>"$setupLog"
  "$@" >>"$setupLog" 2>&1 </dev/null &
  child=$!
  trap 'kill $child 2>/dev/null; wait $child; cleanStale; exit 130' INT TERM HUP
  wait $child
  status=$?
  trap - INT TERM HUP
  [ $status -eq 0 ] && return 0
  tail -n 20 "$setupLog" >&2
  say "$step failed with exit code $status; the whole log is $setupLog."
  return 1
}

asRoot() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "Packages are missing, and there is neither root nor sudo to install them: $*"
    return 1
  fi
}

# installPackages PACKAGE...: from the host's apt.
installPackages() {
  runLogged "Reading package lists" asRoot apt-get -q update || return 1
  runLogged "Installing packages" asRoot env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y --no-install-recommends install "$@"
}

# ---- native

nativeMissing() {
  local installed
  # shellcheck disable=SC2016
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null)
  local package
  for package in $(packages); do
    [[ $'\n'$installed$'\n' == *$'\n'"installed $package"$'\n'* ]] || echo "$package"
  done
}

nativeIsReady() {
  if [ "$1" = quick ] && [ -f "$cache/native.stamp" ]; then
    [ "$(<"$cache/native.stamp")" = "$(wantedStamp)" ] && return 0
  fi
  [ -z "$(nativeMissing)" ]
}

nativeSetup() {
  : >"$setupLog"
  # shellcheck disable=SC2046
  installPackages $(nativeMissing) || return 1
  wantedStamp >"$cache/native.stamp"
}

# ---- root

rootIsReady() {
  [ -f "$rootFolder/.hearth-stamp" ] || return 1
  [ "$(<"$rootFolder/.hearth-stamp")" = "$(wantedStamp)" ] || return 1
  [ "$1" = quick ] && return 0
  local file
  while read -r file; do
    if [ ! -e "$rootFolder$file" ] && [ ! -L "$rootFolder$file" ]; then
      lostFile=$file
      return 1
    fi
  done <"$rootFolder/.hearth-files"
}

# Folders of setups that were killed. Called under the lock; mounts below would be the host's.
cleanStale() {
  local folder point rest
  for folder in "$cache"/root.new.* "$cache"/root.old.*; do
    [ -d "$folder" ] || continue
    while read -r _ _ _ _ point rest; do
      [[ $point == "$folder"/* ]] && umount --lazy "$point"
    done < <(tac /proc/self/mountinfo)
    rm -rf --one-file-system "$folder" 2>>"$setupLog"
  done
}

rootSetup() {
  local new=$cache/root.new.$BASHPID needed=() mirror include settings
  : >"$setupLog"
  [ -n "$lostFile" ] && say "The environment has lost $lostFile and is made anew."
  cleanStale
  command -v mmdebstrap >/dev/null || needed+=(mmdebstrap)
  [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] || needed+=(debian-archive-keyring)
  if [ ${#needed[@]} -gt 0 ]; then
    installPackages "${needed[@]}" || return 1
  fi
  include=$(packages)
  include=${include//$'\n'/,}
  # The host's own way to the archive holds for the new system too: mirror, proxy, checks. A mirror
  # of another distribution has no Debian.
  mirror=
  [ "$hostId" = debian ] && mirror=$(hostMirror /etc/apt "$hostCodename")
  settings=$cache/apt.conf
  apt-config dump 2>/dev/null | grep '^Acquire::' | grep -vi 'auto-\?detect' >"$settings"
  local arguments=(--mode=root --variant=apt --components=main --include="$include"
    --aptopt="$settings" --aptopt='APT::Install-Recommends "false"'
    --dpkgopt=force-unsafe-io)
  # Not an option, for which mmdebstrap would filter the first packages itself, by a program that takes
  # longer than unpacking them; these keep their documentation.
  # shellcheck disable=SC2016
  arguments+=(--setup-hook='printf "path-exclude=%s\n" "/usr/share/doc/*" "/usr/share/man/*" \
    >"$1/etc/dpkg/dpkg.cfg.d/hearth"')
  # dpkg waits for the disk at every step of every package, of which there are thousands, unless its
  # database is in memory.
  # shellcheck disable=SC2016
  arguments+=(--setup-hook='cd "$1/var/lib" && mv dpkg dpkg.disk && mkdir dpkg &&
      mount -t tmpfs -o mode=755 tmpfs dpkg && mv dpkg.disk/* dpkg && rmdir dpkg.disk'
    --customize-hook='cd "$1/var/lib" && cp -a dpkg dpkg.disk && umount dpkg && rmdir dpkg &&
      mv dpkg.disk dpkg')
  runLogged "Making a Debian 13 folder (about a minute, 1.6 GB) in $cache" \
    mmdebstrap "${arguments[@]}" "$suite" "$new" ${mirror:+"$mirror"} || {
    cleanStale
    return 1
  }
  # Mount points for the host's files.
  rm -f "$new/etc/resolv.conf"
  : >"$new/etc/resolv.conf"
  (cd "$new" && find usr etc var/lib/dpkg/status -xdev \( -type f -o -type l \) \
    ! -name '*.pyc' -printf '/%p\n') >"$new/.hearth-files" || return 1
  wantedStamp >"$new/.hearth-stamp" || return 1
  if [ -e "$rootFolder" ]; then mv "$rootFolder" "$cache/root.old.$BASHPID" || return 1; fi
  mv "$new" "$rootFolder" || return 1
  cleanStale
}

# ---- container

containerEngine() {
  local engine
  for engine in podman docker; do
    if command -v $engine >/dev/null && $engine info >/dev/null 2>&1; then
      echo $engine
      return
    fi
  done
  return 1
}

containerImage() {
  local sum
  sum=$(wantedStamp | sha256sum)
  echo "hearth-dev:${sum:0:16}"
}

containerIsReady() {
  engine=$(containerEngine) || return 1
  image=$(containerImage)
  $engine image inspect "$image" >/dev/null 2>&1
}

containerSetup() {
  : >"$setupLog"
  if ! engine=$(containerEngine); then
    say "No environment can be made: this is neither Debian 13 nor a Debian or Ubuntu with root," \
      "and neither podman nor docker answers."
    return 1
  fi
  local list file=$cache/Containerfile
  list=$(packages)
  cat >"$file" <<TEXT
FROM docker.io/library/debian:$suite-slim
RUN apt-get -q update \\
 && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install ${list//$'\n'/ } \\
 && rm -rf /var/lib/apt/lists/*
TEXT
  runLogged "Building the image $(containerImage) with $engine" \
    "$engine" build --network=host --tag "$(containerImage)" --file "$file" "$repo/tools/dev"
}

# ---- entering

# enter FOLDER COMMAND...: replaces this process with the command, in the environment and in FOLDER,
# so that streams, signals and the exit code are the command's own.
enter() {
  local folder=$1
  shift
  local data bin=$repo/build/release/bin
  data=$(findTestData)
  [ -n "$data" ] && export HEARTH_TEST_DATA=$data
  export HEARTH_CACHE_DIR=$cache CCACHE_DIR=${CCACHE_DIR:-$cache/ccache}
  local path=$bin:/usr/lib/ccache:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  if [ "$mode" = native ]; then
    [[ :$PATH: == *:"$bin":* ]] || export PATH=$bin:/usr/lib/ccache:$PATH
    cd "$folder" || exit 1
    exec "$@"
  fi
  export HEARTH_DEV_INSIDE=1
  if [ "$mode" = root ]; then
    HEARTH_DEV_PATH=$path exec unshare --mount --propagation slave -- \
      /bin/bash "$repo/tools/dev/enter_root.sh" "$rootFolder" "$folder" "$repo" "$cache" \
      "${data:-$repo}" "$@"
  fi
  local options=(run --rm --interactive --network=host --workdir "$folder") name mount
  [ -t 0 ] && [ -t 1 ] && options+=(--tty)
  # Rootless podman's root is the user; docker's would leave files of root behind.
  [ "$engine" = docker ] && options+=(--user "$(id -u):$(id -g)")
  for mount in "$repo" "$folder" "$cache" "$data" "${HOME:-}" /tmp \
    "$(cd "$repo" && cd "$(git rev-parse --git-common-dir 2>/dev/null || echo .)" && pwd -P)"; do
    [ -d "$mount" ] && [ "$mount" != / ] && [[ " ${options[*]} " != *" $mount:$mount "* ]] &&
      options+=(--volume "$mount:$mount")
  done
  while read -r name; do
    [ "$name" = PATH ] || options+=(--env "$name")
  done < <(compgen -e)
  exec "$engine" "${options[@]}" --env PATH="$path" "$image" "$@"
}

# For our own work: variables that point compilers and loaders at the host's libraries stay behind.
enterInside() {
  [ "$mode" = native ] ||
    unset LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH PYTHONHOME PYTHONPATH
  enter "$repo" "$@"
}
runInside() { (enterInside "$@"); }

# The libraries of the release build must also be found by programs that are not of the build.
enterShell() {
  export LD_LIBRARY_PATH=$repo/build/release/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  [ $# -gt 0 ] || set -- bash
  enter "$PWD" "$@"
}

# Removes everything that setup made, and the compiler cache.
removeEnvironment() {
  chooseMode
  [ -d "$cache" ] || return 0
  (
    flock 9
    [ -e "$rootFolder" ] && mv "$rootFolder" "$cache/root.old.$BASHPID"
    cleanStale
    rm -rf --one-file-system "$cache/ccache" "$cache/arm64" "$cache/abigail" "$cache"/wheel-parts{,-arm64} \
      "$cache/native.stamp" "$cache/apt.conf" \
      "$cache/Containerfile" "$cache/demo" "$setupLog"
    if [ "$mode" = container ] && engine=$(containerEngine); then
      "$engine" image rm "$(containerImage)" >/dev/null 2>&1
    fi
    rm -f "$cache/setup.lock"
    rmdir "$cache" 2>/dev/null
    true
  ) 9>"$cache/setup.lock"
}

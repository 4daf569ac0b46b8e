# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# hostMirror ETC CODENAME: prints the address of the archive from which the apt configuration in
# folder ETC takes the release CODENAME (not its security updates), nothing when there is none. Both
# source formats of sources.list(5) are read.
hostMirror() {
  local etc=$1 codename=$2 file address
  address=$(
    for file in "$etc"/sources.list "$etc"/sources.list.d/*.list; do
      [ -r "$file" ] || continue
      # Options in brackets may hold spaces.
      sed -e 's/#.*//' -e 's/\[[^]]*\]//' "$file" |
        awk -v suite="$codename" '$1 == "deb" && $3 == suite { print $2 }'
    done
    for file in "$etc"/sources.list.d/*.sources; do
      [ -r "$file" ] || continue
      awk -v suite="$codename" '
        function flush(  i, n, words, isDeb, hasSuite) {
          n = split(field["types"], words); for (i = 1; i <= n; i++) if (words[i] == "deb") isDeb = 1
          n = split(field["suites"], words); for (i = 1; i <= n; i++) if (words[i] == suite) hasSuite = 1
          if (isDeb && hasSuite && tolower(field["enabled"]) !~ /^ *(no|false|0)/) {
            split(field["uris"], words); print words[1]
          }
          split("", field); key = ""
        }
        /^#/ { next }
        /^[[:space:]]*$/ { flush(); next }
        /^[[:space:]]/ { field[key] = field[key] " " $0; next }
        { key = tolower(substr($0, 1, index($0, ":") - 1)); field[key] = substr($0, index($0, ":") + 1) }
        END { flush() }' "$file"
    done | grep -v security
  )
  address=${address%%$'\n'*}
  case $address in
    mirror+file:*) address=$(sed -n -e 's/[[:space:]].*//' -e '/^[a-z]/{p;q}' "${address#mirror+file:}") ;;
  esac
  [ -n "$address" ] && printf '%s\n' "$address"
}

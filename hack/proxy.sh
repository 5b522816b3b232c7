# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Functions of the scripts that take the modules of Corbel from a folder that serves as a module proxy.
# Usage: source hack/proxy.sh, in bash, with the go command in the variable go

module=github.com/corbel-run/corbel
# The folders of the modules that are released.
released=(. cmd/corbel hack/controlplane)
modules=$("$go" env GOMODCACHE)

# forget VERSION removes a version of the released modules from the module cache, where other builds would take it from.
forget() {
	local folder path
	for folder in "${released[@]}"; do
		path=$module/$folder path=${path%/.}
		rm -rf "$modules/cache/download/$path/@v/$1".* "$modules/cache/download/$path/@v/list"
		if [ -d "$modules/$path@$1" ]; then
			chmod -R u+w "$modules/$path@$1"
			rm -rf "$modules/$path@$1"
		fi
	done
}

# take_from FOLDER lets the go command take the modules of Corbel from the folder, and all others as before.
take_from() {
	GOPROXY="file://$1,$("$go" env GOPROXY)" GOCACHE=$("$go" env GOCACHE)
	# The go command keeps an index of each version in the build cache, because a published version never changes.
	# Those in the folder do.
	export GODEBUG=goindex=0
	export GOPROXY GOCACHE GOWORK= GOFLAGS= GOPRIVATE= GONOPROXY=none GONOSUMDB="$module,$module/*"
}

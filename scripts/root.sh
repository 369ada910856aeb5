# shellcheck shell=bash
# Functions for the minimal roots in which tests run: how a root reaches the registries as this machine does.

# Where the checkout is in a root: a directory that every user may enter, because some tests run as another user.
# shellcheck disable=SC2034
HOME_OF=/opt/fairq_ryu
# shellcheck disable=SC2034
PATH_OF=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Of this machine's configuration of apt, how it reaches the mirrors. Hooks of others would run in the empty root.
apt_access() { # FILE
    apt-config dump | grep ^Acquire:: | grep -v ::IndexTargets >"$1"
}

# The settings with which this machine reaches the registries.
copy_configuration() { # ROOT
    local each
    for each in /etc/pip.conf /etc/xdg/pip /root/.pip /root/.config/pip /etc/apt/auth.conf /etc/apt/auth.conf.d \
        /etc/apt/trusted.gpg.d /usr/share/keyrings /usr/local/share/ca-certificates /etc/ssl/certs \
        /etc/resolv.conf /etc/hosts; do
        [ -e "$each" ] || continue
        mkdir -p "$1${each%/*}"
        if [ -d "$each" ]; then
            mkdir -p "$1$each"
            cp -a "$each/." "$1$each/"
        else
            cp -L "$each" "$1$each"
        fi
    done
}

# Packages must not start services, as in containers: they would run in the machine's own network.
no_services() { # ROOT
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
    chmod +x "$1/usr/sbin/policy-rc.d"
}

# The directories of PIP_FIND_LINKS exist inside, too.
bind_find_links() { # ROOT
    local each
    for each in ${PIP_FIND_LINKS-}; do
        [ -d "$each" ] || continue
        mkdir -p "$1$each"
        mount --bind -o ro "$each" "$1$each"
    done
}

# The names of the variables for the access to registries, and for the tests.
passed_on() { compgen -e | grep -E '^(PIP_.*|.*_(proxy|PROXY)|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|FAIRQ_CONNECTIONS)$' || true; }

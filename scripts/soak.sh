#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
say "no soak part exists yet"

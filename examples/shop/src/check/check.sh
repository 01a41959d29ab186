#!/bin/sh
# Ends with an exit code other than 0 where something is wrong: then the action has failed.
set -eu
. ./limits.sh

if [ "$PRODUCTS" -gt "$MAX_PRODUCTS" ]; then
    echo "$PRODUCTS products on a page are too many, $MAX_PRODUCTS are the most" >&2
    exit 1
fi
echo "$PRODUCTS products on a page: fine"
echo '{"status": "ok", "products": '"$PRODUCTS"'}' >> "$FERRY_ACTIONS_OUTPUT_FILEPATH"

#!/usr/bin/env bash
# Kills a process that writes a level in RocksDB 100 times, and looks after each whether a whole commit is left.
#   test/trials/kill_rocksdb.sh build/cpu/bin [KILLS]
set -euo pipefail
HCTR_TEST_KILLS=${2:-100} "$1/unit_tests" --gtest_filter='RocksLevels.AProcessKilled*'

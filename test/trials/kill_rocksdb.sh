#!/usr/bin/env bash
# Kills a process that writes a RocksDB tier 100 times. After each kill, checks that only whole commits remain. Usage:
# test/trials/kill_rocksdb.sh build/cpu/bin [KILLS]
set -euo pipefail
HCTR_TEST_KILLS=${2:-100} "$1/unit_tests" --gtest_filter='RocksLevels.AProcessKilled*'

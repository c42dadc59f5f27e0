// db/schema.h - the tables of the SQLite store, by version (docs/formats/db_format.md).
//
// The schema version is SQLite's user_version. kMigrations[v] migrates from version v to v + 1, so
// the first one makes an empty file a database; released ones are never edited. All later ones so
// far only add tables, columns and indices, or replace an index, so a file of version
// kOldestReadable can be read as it is.
#pragma once

#include <cstdint>
#include <iterator>

namespace hone::db {

inline constexpr int32_t kApplicationId = 0x484f4e45;  // "HONE"

inline constexpr const char* kMigrations[] = {
    R"sql(
CREATE TABLE task (
  id           INTEGER PRIMARY KEY,
  key          TEXT NOT NULL UNIQUE,
  kernel_class TEXT NOT NULL,
  text         TEXT NOT NULL
) STRICT;
CREATE TABLE device (
  id  INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE trial (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  task      INTEGER NOT NULL REFERENCES task(id),
  device    INTEGER NOT NULL REFERENCES device(id),
  threads   INTEGER NOT NULL CHECK (threads > 0),
  version   TEXT NOT NULL,
  algorithm TEXT NOT NULL,
  steps     TEXT NOT NULL,
  decisions TEXT NOT NULL,
  outcome   TEXT NOT NULL,
  message   TEXT NOT NULL,
  times     BLOB NOT NULL CHECK (length(times) % 8 = 0),
  centre    REAL NOT NULL,
  low       REAL NOT NULL,
  high      REAL NOT NULL,
  verified  INTEGER NOT NULL CHECK (verified = 0 OR (verified = 1 AND outcome = 'ok')),
  seed      TEXT NOT NULL,
  unix_time INTEGER NOT NULL,
  host_load REAL NOT NULL,
  model     TEXT NOT NULL
) STRICT;
CREATE INDEX trial_best ON trial (task, device, threads, centre) WHERE verified = 1;
CREATE INDEX trial_task ON trial (task);
)sql",
    // This adds what tells how far a time can be trusted: the machine's drift and load, and duels.
    R"sql(
ALTER TABLE trial ADD COLUMN drift   REAL NOT NULL DEFAULT 1 CHECK (drift > 0);
ALTER TABLE trial ADD COLUMN crowned INTEGER NOT NULL DEFAULT 0 CHECK (crowned = 0 OR (crowned = 1 AND outcome = 'ok'));
ALTER TABLE trial ADD COLUMN duel    BLOB NOT NULL DEFAULT x'' CHECK (length(duel) % 16 = 0);
ALTER TABLE trial ADD COLUMN others  REAL NOT NULL DEFAULT 0;
ALTER TABLE trial ADD COLUMN steal   REAL NOT NULL DEFAULT 0;
)sql",
    // This adds the measured limits of a device.
    R"sql(
CREATE TABLE roofline (
  device     INTEGER PRIMARY KEY REFERENCES device(id),
  cores      INTEGER NOT NULL CHECK (cores > 0),
  flops_one  REAL NOT NULL,
  flops_all  REAL NOT NULL,
  fork_join  REAL NOT NULL,
  unix_time  INTEGER NOT NULL,
  host_load  REAL NOT NULL
) STRICT;
CREATE TABLE roofline_level (
  device    INTEGER NOT NULL REFERENCES roofline(device) ON DELETE CASCADE,
  place     INTEGER NOT NULL,
  level     INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  shared_by INTEGER NOT NULL,
  read_one  REAL NOT NULL,
  read_all  REAL NOT NULL,
  write_one REAL NOT NULL,
  write_all REAL NOT NULL,
  PRIMARY KEY (device, place)
) STRICT;
)sql",
    // This adds the results of hardware counters.
    R"sql(
ALTER TABLE trial ADD COLUMN memory_bound  REAL NOT NULL DEFAULT 0 CHECK (memory_bound BETWEEN 0 AND 1);
ALTER TABLE trial ADD COLUMN core_bound    REAL NOT NULL DEFAULT 0 CHECK (core_bound BETWEEN 0 AND 1);
ALTER TABLE trial ADD COLUMN bounds_source TEXT NOT NULL DEFAULT '';
)sql",
    // This adds an index, as few trials fail and each command that builds asks which ones did.
    R"sql(
CREATE INDEX trial_failed ON trial (device) WHERE outcome <> 'ok';
)sql",
    // This adds how much a schedule rounds, so that the best of a strict level is found without
    // reading the others.
    R"sql(
ALTER TABLE trial ADD COLUMN accuracy INTEGER NOT NULL DEFAULT 0 CHECK (accuracy BETWEEN 0 AND 2);
UPDATE trial SET accuracy = CASE
  WHEN steps LIKE '%narrow(%' THEN 2
  WHEN steps LIKE '%winograd(%' OR steps LIKE '%strassen(%' THEN 1
  ELSE 0 END;
DROP INDEX trial_best;
CREATE INDEX trial_best ON trial (task, device, threads, accuracy, centre) WHERE verified = 1;
)sql",
    // This adds fork and join times of fewer threads than all cores.
    R"sql(
CREATE TABLE roofline_fork_join (
  device  INTEGER NOT NULL REFERENCES roofline(device) ON DELETE CASCADE,
  threads INTEGER NOT NULL CHECK (threads > 1),
  seconds REAL NOT NULL,
  PRIMARY KEY (device, threads)
) STRICT;
)sql",
    // This adds choices: the tasks of a network for which another schedule is faster than the one
    // that is fastest alone.
    R"sql(
CREATE TABLE choice (
  network TEXT NOT NULL,
  best    INTEGER NOT NULL REFERENCES trial(id) ON DELETE CASCADE,
  chosen  INTEGER NOT NULL REFERENCES trial(id) ON DELETE CASCADE,
  PRIMARY KEY (network, best)
) STRICT, WITHOUT ROWID;
CREATE INDEX choice_best ON choice (best);
CREATE INDEX choice_chosen ON choice (chosen);
)sql",
    // This adds what the binary of a GPU says of its code.
    R"sql(
ALTER TABLE trial ADD COLUMN registers           INTEGER NOT NULL DEFAULT 0 CHECK (registers >= 0);
ALTER TABLE trial ADD COLUMN stack_bytes         INTEGER NOT NULL DEFAULT 0 CHECK (stack_bytes >= 0);
ALTER TABLE trial ADD COLUMN spill_bytes         INTEGER NOT NULL DEFAULT 0 CHECK (spill_bytes >= 0);
ALTER TABLE trial ADD COLUMN shared_bytes        INTEGER NOT NULL DEFAULT 0 CHECK (shared_bytes >= 0);
ALTER TABLE trial ADD COLUMN instructions        INTEGER NOT NULL DEFAULT 0 CHECK (instructions >= 0);
ALTER TABLE trial ADD COLUMN multiply_adds       INTEGER NOT NULL DEFAULT 0 CHECK (multiply_adds >= 0);
ALTER TABLE trial ADD COLUMN matrix_instructions INTEGER NOT NULL DEFAULT 0 CHECK (matrix_instructions >= 0);
ALTER TABLE trial ADD COLUMN global_loads        INTEGER NOT NULL DEFAULT 0 CHECK (global_loads >= 0);
ALTER TABLE trial ADD COLUMN global_stores       INTEGER NOT NULL DEFAULT 0 CHECK (global_stores >= 0);
ALTER TABLE trial ADD COLUMN shared_loads        INTEGER NOT NULL DEFAULT 0 CHECK (shared_loads >= 0);
ALTER TABLE trial ADD COLUMN shared_stores       INTEGER NOT NULL DEFAULT 0 CHECK (shared_stores >= 0);
ALTER TABLE trial ADD COLUMN local_accesses      INTEGER NOT NULL DEFAULT 0 CHECK (local_accesses >= 0);
ALTER TABLE trial ADD COLUMN async_copies        INTEGER NOT NULL DEFAULT 0 CHECK (async_copies >= 0);
ALTER TABLE trial ADD COLUMN barriers            INTEGER NOT NULL DEFAULT 0 CHECK (barriers >= 0);
)sql",
    // This adds how much the roles of decisions matter on a device.
    R"sql(
CREATE TABLE sensitivity (
  device       INTEGER NOT NULL REFERENCES device(id),
  threads      INTEGER NOT NULL CHECK (threads > 0),
  task         TEXT NOT NULL,
  role         TEXT NOT NULL,
  version      INTEGER NOT NULL,
  kernel_class TEXT NOT NULL,
  shape        TEXT NOT NULL,
  gain         REAL NOT NULL,
  loss         REAL NOT NULL,
  unix_time    INTEGER NOT NULL,
  PRIMARY KEY (device, threads, task, role)
) STRICT, WITHOUT ROWID;
)sql",
    // This adds how much memory limits the task, by which roles of like tasks are found.
    R"sql(
ALTER TABLE sensitivity ADD COLUMN memory REAL NOT NULL DEFAULT -1;
)sql",
    // This adds which part of its task a trial computed. Only whole ones are verified.
    R"sql(
ALTER TABLE trial ADD COLUMN part TEXT NOT NULL DEFAULT '' CHECK (part = '' OR verified = 0);
CREATE INDEX trial_part ON trial (task, device, threads) WHERE part <> '';
)sql",
};
inline constexpr int kSchemaVersion = static_cast<int>(std::size(kMigrations));
inline constexpr int kOldestReadable = 1;

}  // namespace hone::db

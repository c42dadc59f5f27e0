// db/postgres_schema.h - the tables of the PostgreSQL store, by version. kPostgresMigrations[v]
// migrates from version v to v + 1; released ones are never edited.
#pragma once

#include <iterator>

namespace hone::db {

inline constexpr const char* kPostgresMigrations[] = {
    R"sql(
CREATE TABLE hone_version (version integer NOT NULL);
INSERT INTO hone_version VALUES (1);
CREATE TABLE task (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key          text NOT NULL UNIQUE,
  kernel_class text NOT NULL,
  text         text NOT NULL
);
CREATE TABLE device (
  id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key text NOT NULL UNIQUE
);
CREATE TABLE trial (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  task      bigint NOT NULL REFERENCES task(id),
  device    bigint NOT NULL REFERENCES device(id),
  threads   integer NOT NULL CHECK (threads > 0),
  version   text NOT NULL,
  algorithm text NOT NULL,
  steps     text NOT NULL,
  decisions text NOT NULL,
  outcome   text NOT NULL,
  message   text NOT NULL,
  times     double precision[] NOT NULL,
  centre    double precision NOT NULL,
  low       double precision NOT NULL,
  high      double precision NOT NULL,
  verified  integer NOT NULL CHECK (verified = 0 OR (verified = 1 AND outcome = 'ok')),
  seed      text NOT NULL,
  unix_time bigint NOT NULL,
  host_load double precision NOT NULL,
  model     text NOT NULL,
  drift     double precision NOT NULL CHECK (drift > 0),
  crowned   integer NOT NULL CHECK (crowned = 0 OR (crowned = 1 AND outcome = 'ok')),
  duel      double precision[] NOT NULL CHECK (cardinality(duel) % 2 = 0),
  others    double precision NOT NULL,
  steal     double precision NOT NULL
);
CREATE INDEX trial_best ON trial (task, device, threads, centre, id) WHERE verified = 1;
CREATE INDEX trial_task ON trial (task);
CREATE TABLE roofline (
  device     bigint PRIMARY KEY REFERENCES device(id),
  cores      integer NOT NULL CHECK (cores > 0),
  flops_one  double precision NOT NULL,
  flops_all  double precision NOT NULL,
  fork_join  double precision NOT NULL,
  unix_time  bigint NOT NULL,
  host_load  double precision NOT NULL
);
CREATE TABLE roofline_level (
  device    bigint NOT NULL REFERENCES roofline(device) ON DELETE CASCADE,
  place     integer NOT NULL,
  level     integer NOT NULL,
  bytes     bigint NOT NULL,
  shared_by integer NOT NULL,
  read_one  double precision NOT NULL,
  read_all  double precision NOT NULL,
  write_one double precision NOT NULL,
  write_all double precision NOT NULL,
  PRIMARY KEY (device, place)
);
)sql",
    // This adds the results of hardware counters.
    R"sql(
ALTER TABLE trial
  ADD COLUMN memory_bound  double precision NOT NULL DEFAULT 0 CHECK (memory_bound BETWEEN 0 AND 1),
  ADD COLUMN core_bound    double precision NOT NULL DEFAULT 0 CHECK (core_bound BETWEEN 0 AND 1),
  ADD COLUMN bounds_source text NOT NULL DEFAULT '';
)sql",
    // This adds an index, as few trials fail and each command that builds asks which ones did.
    R"sql(
CREATE INDEX trial_failed ON trial (device) WHERE outcome <> 'ok';
)sql",
    // This adds how much a schedule rounds, so that the best of a strict level is found without
    // reading the others.
    R"sql(
ALTER TABLE trial ADD COLUMN accuracy integer NOT NULL DEFAULT 0 CHECK (accuracy BETWEEN 0 AND 2);
UPDATE trial SET accuracy = CASE
  WHEN steps LIKE '%narrow(%' THEN 2
  WHEN steps LIKE '%winograd(%' OR steps LIKE '%strassen(%' THEN 1
  ELSE 0 END;
DROP INDEX trial_best;
CREATE INDEX trial_best ON trial (task, device, threads, accuracy, centre, id) WHERE verified = 1;
)sql",
    // This adds fork and join times of fewer threads than all cores.
    R"sql(
CREATE TABLE roofline_fork_join (
  device  bigint NOT NULL REFERENCES roofline(device) ON DELETE CASCADE,
  threads integer NOT NULL CHECK (threads > 1),
  seconds double precision NOT NULL,
  PRIMARY KEY (device, threads)
);
)sql",
    // This adds choices: the tasks of a network for which another schedule is faster than the one
    // that is fastest alone.
    R"sql(
CREATE TABLE choice (
  network text NOT NULL,
  best    bigint NOT NULL REFERENCES trial(id) ON DELETE CASCADE,
  chosen  bigint NOT NULL REFERENCES trial(id) ON DELETE CASCADE,
  PRIMARY KEY (network, best)
);
CREATE INDEX choice_best ON choice (best);
CREATE INDEX choice_chosen ON choice (chosen);
)sql",
    // This adds what the binary of a GPU says of its code.
    R"sql(
ALTER TABLE trial
  ADD COLUMN registers           bigint NOT NULL DEFAULT 0 CHECK (registers >= 0),
  ADD COLUMN stack_bytes         bigint NOT NULL DEFAULT 0 CHECK (stack_bytes >= 0),
  ADD COLUMN spill_bytes         bigint NOT NULL DEFAULT 0 CHECK (spill_bytes >= 0),
  ADD COLUMN shared_bytes        bigint NOT NULL DEFAULT 0 CHECK (shared_bytes >= 0),
  ADD COLUMN instructions        bigint NOT NULL DEFAULT 0 CHECK (instructions >= 0),
  ADD COLUMN multiply_adds       bigint NOT NULL DEFAULT 0 CHECK (multiply_adds >= 0),
  ADD COLUMN matrix_instructions bigint NOT NULL DEFAULT 0 CHECK (matrix_instructions >= 0),
  ADD COLUMN global_loads        bigint NOT NULL DEFAULT 0 CHECK (global_loads >= 0),
  ADD COLUMN global_stores       bigint NOT NULL DEFAULT 0 CHECK (global_stores >= 0),
  ADD COLUMN shared_loads        bigint NOT NULL DEFAULT 0 CHECK (shared_loads >= 0),
  ADD COLUMN shared_stores       bigint NOT NULL DEFAULT 0 CHECK (shared_stores >= 0),
  ADD COLUMN local_accesses      bigint NOT NULL DEFAULT 0 CHECK (local_accesses >= 0),
  ADD COLUMN async_copies        bigint NOT NULL DEFAULT 0 CHECK (async_copies >= 0),
  ADD COLUMN barriers            bigint NOT NULL DEFAULT 0 CHECK (barriers >= 0);
)sql",
    // This adds how much the roles of decisions matter on a device.
    R"sql(
CREATE TABLE sensitivity (
  device       bigint NOT NULL REFERENCES device(id),
  threads      integer NOT NULL CHECK (threads > 0),
  task         text NOT NULL,
  role         text NOT NULL,
  version      integer NOT NULL,
  kernel_class text NOT NULL,
  shape        text NOT NULL,
  gain         double precision NOT NULL,
  loss         double precision NOT NULL,
  unix_time    bigint NOT NULL,
  PRIMARY KEY (device, threads, task, role)
);
)sql",
    // This adds how much memory limits the task.
    R"sql(
ALTER TABLE sensitivity ADD COLUMN memory double precision NOT NULL DEFAULT -1;
)sql",
    // This adds which part of its task a trial computed. Only whole ones are verified.
    R"sql(
ALTER TABLE trial ADD COLUMN part text NOT NULL DEFAULT '' CHECK (part = '' OR verified = 0);
CREATE INDEX trial_part ON trial (task, device, threads) WHERE part <> '';
)sql",
};
inline constexpr int kPostgresVersion = static_cast<int>(std::size(kPostgresMigrations));

}  // namespace hone::db

// db/copy.h - records from one store, or from a file of JSON lines, into another: each once,
// however often it is copied. Works with any store, in pages: memory does not grow with the
// records.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "hone/db/trial_store.h"

namespace hone::db {

// Hash of what a record says and what never changes: equal ones are one and the same trial. Its id
// and what was found out about it later (outcome, message, verified, crowned) do not count.
[[nodiscard]] uint64_t identity(const trial::Record& record);

// Calls `visit` for every record that agrees with the filter, oldest first, until it fails.
[[nodiscard]] Status for_each_record(TrialStore& store, Filter filter,
                                     const std::function<Status(trial::Record&&)>& visit);

struct Copied {
  int64_t added = 0;
  int64_t known = 0;  // were there before; a wrong answer among them is marked as one here, too
};

// Adds records to a store unless it has them. Of a trial that comes twice, with different outcomes,
// the failure stays.
class Copier {
 public:
  [[nodiscard]] static Result<Copier> create(TrialStore& to);
  [[nodiscard]] Status add(trial::Record record);
  [[nodiscard]] Result<Copied> finish();

 private:
  explicit Copier(TrialStore& to) : to_(&to) {}
  [[nodiscard]] Status flush();
  TrialStore* to_;
  std::unordered_map<uint64_t, int64_t> known_;  // the id if the outcome is ok here, else 0
  std::vector<trial::Record> batch_;
  std::unordered_map<uint64_t, size_t> waiting_;  // places in the batch
  Copied copied_;
};

[[nodiscard]] Result<Copied> add_records(std::vector<trial::Record> records, TrialStore& to);
[[nodiscard]] Result<Copied> copy_records(TrialStore& from, TrialStore& to);
// A bad line is an error that names it, and nothing of the file is added.
[[nodiscard]] Result<Copied> import_json_lines(const std::string& path, TrialStore& to);
// Returns how many lines were written; the file is there whole or not at all. "-" is standard
// output.
[[nodiscard]] Result<int64_t> export_json_lines(TrialStore& from, const Filter& filter,
                                                const std::string& path);

}  // namespace hone::db

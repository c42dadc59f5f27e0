// db/copy.h - copies records from one store, or from a file of JSON lines, into another. A record
// is added once, however often it is copied. Copying works page by page with any store, so memory
// does not grow with the number of records.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "hone/database.h"
#include "hone/db/trial_store.h"

namespace hone::db {

// Returns a hash of the parts of a record that never change; records with equal hashes are the same
// trial. The id and facts that are found later (outcome, message, verified, crowned) are not part
// of it.
[[nodiscard]] uint64_t identity(const trial::Record& record);

// Calls `visit` for every record that matches the filter, oldest first, until it fails.
[[nodiscard]] Status for_each_record(TrialStore& store, Filter filter,
                                     const std::function<Status(trial::Record&&)>& visit);

// Adds records to a store unless it has them. If a trial comes twice with different outcomes, the
// failure is kept: a known record that is a wrong answer elsewhere is marked as one here, too.
class Copier {
 public:
  [[nodiscard]] static Result<Copier> create(TrialStore& to);
  [[nodiscard]] Status add(trial::Record record);
  [[nodiscard]] Result<CopiedTrials> finish();

 private:
  explicit Copier(TrialStore& to) : to_(&to) {}
  [[nodiscard]] Status flush();
  TrialStore* to_;
  std::unordered_map<uint64_t, int64_t> known_;  // id if the stored outcome is ok, else 0
  std::vector<trial::Record> batch_;
  std::unordered_map<uint64_t, size_t> waiting_;  // positions in the batch
  CopiedTrials copied_;
};

[[nodiscard]] Result<CopiedTrials> add_records(std::vector<trial::Record> records, TrialStore& to);
[[nodiscard]] Result<CopiedTrials> copy_records(TrialStore& from, TrialStore& to);
// Imports a file. A bad line is an error that names it, and then nothing of the file is added.
[[nodiscard]] Result<CopiedTrials> import_json_lines(const std::string& path, TrialStore& to);
// Exports to a file and returns the number of lines. The file is complete or not there at all. "-"
// is standard output.
[[nodiscard]] Result<int64_t> export_json_lines(TrialStore& from, const Filter& filter,
                                                const std::string& path);

}  // namespace hone::db

#include "hone/db/copy.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/output_file.h"
#include "hone/db/json_lines.h"
#include "hone/db/line_check.h"

namespace hone::db {
namespace {

constexpr int64_t kPage = 5000;  // records in memory at a time
constexpr size_t kBatch = 1000;  // records added in one transaction

using Visit = std::function<Status(trial::Record&&)>;

// Where the lines of an export go: a file, or standard output for "-".
class LineOutput {
 public:
  static Result<LineOutput> open(const std::string& path) {
    LineOutput output;
    if (path == "-") return output;
    HONE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
    output.file_.emplace(std::move(file));
    return output;
  }
  Status write(const std::string& text) {
    if (file_) return file_->write(text);
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? ok_status()
                                                                           : failure();
  }
  Status finish() {
    if (file_) return file_->finish();
    return std::fflush(stdout) == 0 ? ok_status() : failure();
  }

 private:
  [[nodiscard]] static Status failure() {
    return error(Code::kIo, "cannot write to standard output: {}", errno_text(errno));
  }
  std::optional<OutputFile> file_;
};

// Does what TrialStore::set_verified() does, to a record that is not stored yet.
void mark_failed(trial::Record& record, trial::Record&& found) {
  if (record.outcome != trial::Outcome::kOk) return;
  record.outcome = found.outcome;
  record.message = std::move(found.message);
  record.verified = record.crowned = false;
}

}  // namespace

uint64_t identity(const trial::Record& record) {
  trial::Record plain = record;
  plain.outcome = trial::Outcome::kOk;
  plain.verified = plain.crowned = false;
  plain.message.clear();
  plain.task_text.clear();  // stores give it only if asked, and an older one may have none
  return hash_string(to_json_line(plain));
}

Status for_each_record(TrialStore& store, Filter filter, const Visit& visit) {
  filter.limit = kPage;
  filter.newest_first = false;
  while (true) {
    HONE_ASSIGN_OR_RETURN(std::vector<trial::Record> page, store.query(filter));
    if (page.empty()) return ok_status();
    filter.after_id = page.back().id;
    const bool last = std::ssize(page) < kPage;
    for (trial::Record& record : page) HONE_RETURN_IF_ERROR(visit(std::move(record)));
    if (last) return ok_status();
  }
}

Result<Copier> Copier::create(TrialStore& to) {
  Copier copier(to);
  HONE_RETURN_IF_ERROR(
      for_each_record(to, {.parts = Filter::Parts::kAll}, [&copier](trial::Record&& record) {
        const bool ok = record.outcome == trial::Outcome::kOk;
        copier.known_.emplace(identity(record), ok ? record.id : 0);
        return ok_status();
      }));
  return copier;
}

Status Copier::add(trial::Record record) {
  const uint64_t trial = identity(record);
  const auto [known, is_new] = known_.emplace(trial, 0);
  if (is_new) {
    waiting_.emplace(trial, batch_.size());
    batch_.push_back(std::move(record));
    return batch_.size() < kBatch ? ok_status() : flush();
  }
  ++copied_.known;
  if (record.outcome == trial::Outcome::kOk) return ok_status();
  if (const auto waiting = waiting_.find(trial); waiting != waiting_.end()) {
    mark_failed(batch_[waiting->second], std::move(record));
    return ok_status();
  }
  if (known->second == 0) return ok_status();
  return to_->set_verified(std::exchange(known->second, 0), record.outcome, record.message);
}

Status Copier::flush() {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, to_->add(batch_));
  for (const auto& [trial, place] : waiting_) {
    if (batch_[place].outcome == trial::Outcome::kOk) known_[trial] = ids[place];
  }
  copied_.added += std::ssize(batch_);
  batch_.clear();
  waiting_.clear();
  return ok_status();
}

Result<CopiedTrials> Copier::finish() {
  HONE_RETURN_IF_ERROR(flush());
  return copied_;
}

Result<CopiedTrials> add_records(std::vector<trial::Record> records, TrialStore& to) {
  HONE_ASSIGN_OR_RETURN(Copier copier, Copier::create(to));
  for (trial::Record& record : records) HONE_RETURN_IF_ERROR(copier.add(std::move(record)));
  return copier.finish();
}

Result<CopiedTrials> copy_records(TrialStore& from, TrialStore& to) {
  HONE_ASSIGN_OR_RETURN(Copier copier, Copier::create(to));
  Filter all;
  all.with_task_text = true;
  all.parts = Filter::Parts::kAll;
  HONE_RETURN_IF_ERROR(for_each_record(
      from, all, [&copier](trial::Record&& record) { return copier.add(std::move(record)); }));
  return copier.finish();
}

Result<CopiedTrials> import_json_lines(const std::string& path, TrialStore& to) {
  return import_json_lines(path, to, nullptr);
}

Result<CopiedTrials> import_json_lines(const std::string& path, TrialStore& to,
                                       const LineCheck& check) {
  // It is read twice: first to see that every line is good.
  std::error_code failure;
  if (std::filesystem::exists(path, failure) && !std::filesystem::is_regular_file(path, failure))
    return invalid("cannot import {}: it is not a file", path);
  HONE_RETURN_IF_ERROR(for_each_json_line(
      path, [](trial::Record&&) { return ok_status(); }, check));
  HONE_ASSIGN_OR_RETURN(Copier copier, Copier::create(to));
  HONE_RETURN_IF_ERROR(for_each_json_line(
      path, [&copier](trial::Record&& record) { return copier.add(std::move(record)); }));
  return copier.finish();
}

Result<int64_t> export_json_lines(TrialStore& from, const Filter& filter, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(LineOutput file, LineOutput::open(path));
  int64_t lines = 0;
  Filter whole = filter;
  whole.with_task_text = true;
  whole.parts = Filter::Parts::kAll;
  HONE_RETURN_IF_ERROR(for_each_record(from, whole, [&](trial::Record&& record) {
    ++lines;
    return file.write(to_json_line(record) + "\n");
  }));
  HONE_RETURN_IF_ERROR(file.finish());
  return lines;
}

}  // namespace hone::db

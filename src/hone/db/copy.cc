#include "hone/db/copy.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/db/json_lines.h"

namespace hone::db {
namespace {

constexpr int64_t kPage = 5000;  // records in memory at a time
constexpr size_t kBatch = 1000;  // records added in one transaction

using Visit = std::function<Status(Record&&)>;

// Written beside `path` and renamed in the end, so that nobody sees a part of it; a device or a
// pipe is written in place. A symbolic link is followed.
class OutputFile {
 public:
  static Result<OutputFile> open(const std::string& path) {
    OutputFile file(path);
    std::error_code failure;
    const bool exists = std::filesystem::exists(path, failure);
    if (path == "-") {
      file.file_ = stdout;
    } else if (exists && !std::filesystem::is_regular_file(path, failure)) {
      file.file_ = std::fopen(path.c_str(), "we");
    } else {
      file.target_ = exists ? std::filesystem::canonical(path, failure).string() : path;
      file.partial_ = fmt::format("{}.{}.partial", file.target_, getpid());
      file.file_ = std::fopen(file.partial_.c_str(), "we");
    }
    if (file.file_ == nullptr) return file.failure();
    return file;
  }
  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)),
        target_(std::move(other.target_)),
        partial_(std::move(other.partial_)),
        file_(std::exchange(other.file_, nullptr)) {}
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile() {
    if (file_ == nullptr) return;
    close();
    if (!partial_.empty()) std::remove(partial_.c_str());
  }
  Status write(const std::string& text) {
    return std::fwrite(text.data(), 1, text.size(), file_) == text.size() ? ok_status() : failure();
  }
  Status finish() {
    if (std::fflush(file_) != 0) return failure();
    if (partial_.empty()) return close() == 0 ? ok_status() : failure();
    if (::fsync(fileno(file_)) != 0 || close() != 0 ||
        std::rename(partial_.c_str(), target_.c_str()) != 0) {
      const Status status = failure();
      std::remove(partial_.c_str());
      return status;
    }
    return ok_status();
  }

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  int close() {
    std::FILE* file = std::exchange(file_, nullptr);
    return file == stdout ? 0 : std::fclose(file);
  }
  [[nodiscard]] Status failure() const {
    return error(Code::kIo, "cannot write {}: {}", path_, errno_text(errno));
  }
  std::string path_, target_, partial_;  // partial_: empty if it is written in place
  std::FILE* file_ = nullptr;
};

// As Store::set_verified() does, to a record that is not stored yet.
void mark_failed(Record& record, Record&& found) {
  if (record.outcome != measure::Outcome::kOk) return;
  record.outcome = found.outcome;
  record.message = std::move(found.message);
  record.verified = record.crowned = false;
}

}  // namespace

uint64_t identity(const Record& record) {
  Record plain = record;
  plain.outcome = measure::Outcome::kOk;
  plain.verified = plain.crowned = false;
  plain.message.clear();
  plain.task_text.clear();  // stores give it only if asked, and an older one may have none
  return hash_string(to_json_line(plain));
}

Status for_each_record(Store& store, Filter filter, const Visit& visit) {
  filter.limit = kPage;
  filter.newest_first = false;
  while (true) {
    HONE_ASSIGN_OR_RETURN(std::vector<Record> page, store.query(filter));
    if (page.empty()) return ok_status();
    filter.after_id = page.back().id;
    const bool last = std::ssize(page) < kPage;
    for (Record& record : page) HONE_RETURN_IF_ERROR(visit(std::move(record)));
    if (last) return ok_status();
  }
}

Result<Copier> Copier::create(Store& to) {
  Copier copier(to);
  HONE_RETURN_IF_ERROR(for_each_record(to, {}, [&copier](Record&& record) {
    const bool ok = record.outcome == measure::Outcome::kOk;
    copier.known_.emplace(identity(record), ok ? record.id : 0);
    return ok_status();
  }));
  return copier;
}

Status Copier::add(Record record) {
  const uint64_t trial = identity(record);
  const auto [known, is_new] = known_.emplace(trial, 0);
  if (is_new) {
    waiting_.emplace(trial, batch_.size());
    batch_.push_back(std::move(record));
    return batch_.size() < kBatch ? ok_status() : flush();
  }
  ++copied_.known;
  if (record.outcome == measure::Outcome::kOk) return ok_status();
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
    if (batch_[place].outcome == measure::Outcome::kOk) known_[trial] = ids[place];
  }
  copied_.added += std::ssize(batch_);
  batch_.clear();
  waiting_.clear();
  return ok_status();
}

Result<Copied> Copier::finish() {
  HONE_RETURN_IF_ERROR(flush());
  return copied_;
}

Result<Copied> add_records(std::vector<Record> records, Store& to) {
  HONE_ASSIGN_OR_RETURN(Copier copier, Copier::create(to));
  for (Record& record : records) HONE_RETURN_IF_ERROR(copier.add(std::move(record)));
  return copier.finish();
}

Result<Copied> copy_records(Store& from, Store& to) {
  HONE_ASSIGN_OR_RETURN(Copier copier, Copier::create(to));
  Filter all;
  all.with_task_text = true;
  HONE_RETURN_IF_ERROR(for_each_record(
      from, all, [&copier](Record&& record) { return copier.add(std::move(record)); }));
  return copier.finish();
}

Result<Copied> import_json_lines(const std::string& path, Store& to) {
  // It is read twice: first to see that every line is good.
  std::error_code failure;
  if (std::filesystem::exists(path, failure) && !std::filesystem::is_regular_file(path, failure))
    return invalid("cannot import {}: it is not a file", path);
  HONE_RETURN_IF_ERROR(for_each_json_line(path, [](Record&&) { return ok_status(); }));
  HONE_ASSIGN_OR_RETURN(Copier copier, Copier::create(to));
  HONE_RETURN_IF_ERROR(for_each_json_line(
      path, [&copier](Record&& record) { return copier.add(std::move(record)); }));
  return copier.finish();
}

Result<int64_t> export_json_lines(Store& from, const Filter& filter, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::open(path));
  int64_t lines = 0;
  Filter whole = filter;
  whole.with_task_text = true;
  HONE_RETURN_IF_ERROR(for_each_record(from, whole, [&](Record&& record) {
    ++lines;
    return file.write(to_json_line(record) + "\n");
  }));
  HONE_RETURN_IF_ERROR(file.finish());
  return lines;
}

}  // namespace hone::db

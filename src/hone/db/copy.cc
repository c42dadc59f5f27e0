#include "hone/db/copy.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "hone/base/hash.h"
#include "hone/db/json_lines.h"

namespace hone::db {
namespace {

constexpr int64_t kPage = 5000;  // records in memory at a time
constexpr size_t kBatch = 1000;  // records added in one transaction

using Line = std::function<Status(Record&&)>;

Status for_each_line(const std::string& path, const Line& visit) {
  std::ifstream file(path);
  if (!file) return error(Code::kNotFound, "cannot read {}: {}", path, std::strerror(errno));
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    Result<Record> record = parse_json_line(line);
    if (!record.ok()) return invalid("{} line {}: {}", path, number, record.status().message());
    HONE_RETURN_IF_ERROR(visit(std::move(record).value()));
  }
  if (file.bad()) return error(Code::kIo, "cannot read {}: {}", path, std::strerror(errno));
  return ok_status();
}

}  // namespace

uint64_t identity(const Record& record) {
  Record plain = record;
  plain.id = 0;
  plain.task_text.clear();  // stores give it only if asked, and an older one may have none
  return hash_string(to_json_line(plain));
}

Status for_each_record(Store& store, Filter filter, const Line& visit) {
  filter.limit = kPage;
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
    copier.known_.insert(identity(record));
    return ok_status();
  }));
  return copier;
}

Status Copier::add(Record record) {
  if (!known_.insert(identity(record)).second) {
    ++copied_.known;
    return ok_status();
  }
  batch_.push_back(std::move(record));
  return batch_.size() < kBatch ? ok_status() : flush();
}

Status Copier::flush() {
  HONE_RETURN_IF_ERROR(to_->add(batch_).status());
  copied_.added += std::ssize(batch_);
  batch_.clear();
  return ok_status();
}

Result<Copied> Copier::finish() {
  HONE_RETURN_IF_ERROR(flush());
  return copied_;
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
  HONE_RETURN_IF_ERROR(for_each_line(path, [](Record&&) { return ok_status(); }));
  HONE_ASSIGN_OR_RETURN(Copier copier, Copier::create(to));
  HONE_RETURN_IF_ERROR(
      for_each_line(path, [&copier](Record&& record) { return copier.add(std::move(record)); }));
  return copier.finish();
}

Result<int64_t> export_json_lines(Store& from, const Filter& filter, const std::string& path) {
  const bool to_stdout = path == "-";
  const std::string partial = path + ".partial";
  std::FILE* file = to_stdout ? stdout : std::fopen(partial.c_str(), "w");
  if (file == nullptr) return error(Code::kIo, "cannot write {}: {}", path, std::strerror(errno));
  int64_t lines = 0;
  Filter whole = filter;
  whole.with_task_text = true;
  Status status = for_each_record(from, whole, [&](Record&& record) {
    const std::string line = to_json_line(record) + "\n";
    ++lines;
    if (std::fwrite(line.data(), 1, line.size(), file) == line.size()) return ok_status();
    return error(Code::kIo, "cannot write {}: {}", path, std::strerror(errno));
  });
  const int closed = to_stdout ? std::fflush(file) : std::fclose(file);
  if (status.ok() && closed != 0)
    status = error(Code::kIo, "cannot write {}: {}", path, std::strerror(errno));
  if (!to_stdout && status.ok() && std::rename(partial.c_str(), path.c_str()) != 0)
    status = error(Code::kIo, "cannot write {}: {}", path, std::strerror(errno));
  if (!to_stdout && !status.ok()) std::remove(partial.c_str());
  if (!status.ok()) return status;
  return lines;
}

}  // namespace hone::db

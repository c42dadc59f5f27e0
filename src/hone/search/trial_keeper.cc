#include "hone/search/trial_keeper.h"

namespace hone::search {

void TrialKeeper::keep(const Findings& findings) {
  for (const trial::Record& record : findings.records) {
    if (record.outcome == trial::Outcome::kOk) continue;
    Failures& alike = failures_[record.outcome];
    if (++alike.count == 1) alike.first = record.message;
  }
  if (store_ && status_.ok()) status_ = store(findings);
}

Status TrialKeeper::store(const Findings& findings) {
  HONE_RETURN_IF_ERROR(store_->add(findings.records).status());
  for (const trial::Record& record : findings.invalidated) HONE_RETURN_IF_ERROR(invalidate(record));
  return ok_status();
}

// A schedule that was right before is no best any more: another version of the compiler may have
// measured it, its mistake shows now and then, or it does not run here now.
Status TrialKeeper::invalidate(const trial::Record& bad) {
  db::Filter filter;
  filter.task = bad.task;
  filter.device = bad.device;
  filter.threads = bad.threads;
  filter.verified_only = true;
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> verified, store_->query(filter));
  for (const trial::Record& record : verified) {
    if (record.steps != bad.steps) continue;
    const Status status = store_->set_verified(record.id, bad.outcome, bad.message);
    if (!status.ok() && status.code() != Code::kNotFound) return status;  // removed by now
  }
  return ok_status();
}

}  // namespace hone::search

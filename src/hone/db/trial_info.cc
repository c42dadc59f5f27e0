#include "hone/db/trial_info.h"

namespace hone::db {

TrialInfo info_of(trial::Record&& record) {
  return {.task = record.task,
          .kernel_class = std::move(record.kernel_class),
          .device = std::move(record.device),
          .threads = record.threads,
          .model = std::move(record.model),
          .version = std::move(record.version),
          .algorithm = std::move(record.algorithm),
          .accuracy = std::string(trial::accuracy_name(record.accuracy)),
          .steps = std::move(record.steps),
          .outcome = std::string(trial::outcome_name(record.outcome)),
          .seconds = record.centre,
          .verified = record.verified,
          .unix_time = record.unix_time,
          .code = record.code,
          .decisions = std::move(record.decisions),
          .message = std::move(record.message),
          .part = std::move(record.part)};
}

}  // namespace hone::db

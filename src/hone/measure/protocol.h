// measure/protocol.h - the bodies of the messages that measure/wire.h transfers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hone/base/status.h"
#include "hone/measure/job.h"

namespace hone::measure {

struct OperandsMessage {
  uint64_t id = 0;
  OperandLayout layout;
};
// A job without what only the tuner needs: operands are named by id, timeout and label are left
// out.
struct JobMessage {
  Job job;
  uint64_t operands = 0;  // 0 if there are none
};

[[nodiscard]] std::string encode(const OperandsMessage& message);
[[nodiscard]] Result<OperandsMessage> decode_operands(std::string_view bytes);
[[nodiscard]] std::string encode_job(const Job& job);
[[nodiscard]] Result<JobMessage> decode_job(std::string_view bytes);
[[nodiscard]] std::string encode(const Measurement& measurement);
[[nodiscard]] Result<Measurement> decode_measurement(std::string_view bytes);

}  // namespace hone::measure

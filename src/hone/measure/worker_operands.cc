#include "hone/measure/worker_operands.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "hone/measure/verify.h"
#include "hone/trial/statistics.h"

namespace hone::measure {

Result<std::unique_ptr<WorkerOperands>> WorkerOperands::map(const OperandLayout& layout, int fd) {
  std::unique_ptr<WorkerOperands> result(new WorkerOperands);
  result->layout_ = layout;
  void* memory =
      mmap(nullptr, static_cast<size_t>(layout.total_bytes), PROT_READ, MAP_SHARED, fd, 0);
  const int code = errno;
  close(fd);
  if (memory == MAP_FAILED)
    return hone::error(Code::kIo, "cannot map the operands: {}", std::strerror(code));
  result->shared_ = static_cast<char*>(memory);
  HONE_RETURN_IF_ERROR(result->fill());
  return result;
}

Status WorkerOperands::fill() {
  std::vector<int64_t> input_sizes, output_sizes;
  for (const auto& e : layout_.entries)
    (e.role == ir::Role::kOutput ? output_sizes : input_sizes).push_back(e.bytes);
  num_outputs_ = output_sizes.size();
  HONE_RETURN_IF_ERROR(inputs_.reserve(input_sizes));
  HONE_RETURN_IF_ERROR(outputs_.reserve(output_sizes));
  size_t input = 0, output = 0;
  for (const auto& e : layout_.entries) {
    if (e.role == ir::Role::kOutput) {
      data_.push_back(outputs_.piece(output++));
      continue;
    }
    data_.push_back(inputs_.piece(input++));
    std::memcpy(data_.back(), shared_ + e.offset, static_cast<size_t>(e.bytes));
  }
  return inputs_.make_read_only();
}

WorkerOperands::~WorkerOperands() {
  if (shared_ != nullptr) munmap(shared_, static_cast<size_t>(layout_.total_bytes));
}

void WorkerOperands::reset_outputs(bool poison) {
  outputs_.restore_zones();
  for (size_t i = 0; poison && i < num_outputs_; ++i) outputs_.poison(i);
}

std::optional<double> WorkerOperands::error() const {
  std::optional<double> worst;
  for (const auto& e : layout_.expected) {
    const auto* places = reinterpret_cast<const int64_t*>(shared_ + e.places_offset);
    const auto* values = reinterpret_cast<const double*>(shared_ + e.values_offset);
    const double error =
        relative_error(data(e.operand), e.dtype, {places, static_cast<size_t>(e.num_places)},
                       {values, static_cast<size_t>(e.num_values)});
    worst = std::max(worst.value_or(0), error);
  }
  return worst;
}

Status check_operand(const Argument& a, size_t index, const WorkerOperands* operands) {
  if (operands == nullptr || a.operand >= operands->count()) {
    return invalid("argument {} is operand {}, which there is not", index, a.operand);
  }
  const auto& entry = operands->entry(a.operand);
  const bool written = a.role == ir::Role::kOutput;
  if (written == (entry.role == ir::Role::kOutput) && a.bytes <= entry.bytes) return ok_status();
  return invalid("argument {} ({}, {} bytes) does not fit operand {} ({}, {} bytes)", index,
                 ir::role_name(a.role), a.bytes, a.operand, ir::role_name(entry.role), entry.bytes);
}

Measurement wrong(const Job& job, double error, std::string message) {
  Measurement m = failed(job.id, trial::Outcome::kWrongAnswer, std::move(message));
  m.error = error;
  return m;
}

std::optional<Measurement> check_outputs(const Job& job, bool damaged,
                                         const WorkerOperands* operands, double& largest) {
  if (damaged || (operands != nullptr && operands->damaged()))
    return wrong(job, 0, "something was written outside a buffer");
  const auto error = operands == nullptr ? std::nullopt : operands->error();
  if (!error) {
    return failed(job.id, trial::Outcome::kLoad,
                  "the output is to be checked, but nothing is expected of it");
  }
  largest = std::max(largest, *error);
  if (*error <= job.tolerance) return std::nullopt;
  return wrong(job, *error,
               fmt::format("relative error {:.3g}, allowed {:.3g}", *error, job.tolerance));
}

void keep_duel(Measurement& m, trial::Duel duel) {
  m.duel = std::move(duel);
  m.timing.samples = m.duel.challenger;
  m.timing.runs = static_cast<int64_t>(m.duel.pairs());
  summarise(m.timing);
}

}  // namespace hone::measure

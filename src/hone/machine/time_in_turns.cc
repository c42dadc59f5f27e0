#include "hone/machine/time_in_turns.h"

#include "hone/base/clock.h"
#include "hone/machine/machine.h"
#include "hone/model.h"
#include "hone/runtime/device/device.h"

namespace hone::machine {

Result<std::vector<std::vector<double>>> time_in_turns(const std::vector<std::string>& libraries,
                                                       int threads, double seconds) {
  struct Entry {
    Model model;
    std::vector<Tensor> inputs, outputs;
    std::vector<const void*> from;
    std::vector<void*> to;
    std::vector<double> times;
  };
  std::vector<Entry> entries;
  for (const std::string& library : libraries) {
    HONE_ASSIGN_OR_RETURN(Model model, Model::load(library, {threads, 1e-9 * runtime::kAmpleNs}));
    Entry entry{std::move(model), {}, {}, {}, {}, {}};
    for (const ModelTensor& input : entry.model.inputs())
      entry.inputs.emplace_back(input.dtype, input.shape);
    for (const ModelTensor& output : entry.model.outputs())
      entry.outputs.emplace_back(output.dtype, output.shape);
    for (const Tensor& tensor : entry.inputs) entry.from.push_back(tensor.data());
    for (Tensor& tensor : entry.outputs) entry.to.push_back(tensor.data());
    entries.push_back(std::move(entry));
  }
  Clock& clock = real_clock();
  const double end = clock.now_seconds() + seconds;
  for (int round = 0; round < kLeastRounds || clock.now_seconds() < end; ++round) {
    for (Entry& entry : entries) {
      const double start = clock.now_seconds();
      HONE_RETURN_IF_ERROR(entry.model.run(entry.from, entry.to));
      if (round > 0) entry.times.push_back(clock.now_seconds() - start);
    }
  }
  std::vector<std::vector<double>> times;
  for (Entry& entry : entries) times.push_back(std::move(entry.times));
  return times;
}

}  // namespace hone::machine

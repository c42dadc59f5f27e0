// What Hone makes of models when it measures nothing and knows no database, as text to compare: for
// each device and task its key, the schedule that is chosen, a hash of its machine code and a hash
// of what the cost models read of 100 sampled schedules. Equal text before and after a change shows
// that the change moved no generated code (tests/generated_code_test.py).
//   hone_generated_code MODEL DEVICE ...
#include <algorithm>

#include "hone/backend/cpu/compiler.h"
#include "hone/base/hash.h"
#include "hone/cost/candidate_features.h"
#include "hone/schedule/lower.h"
#include "hone/session/compile_graph.h"
#include "hone/session/session.h"

namespace hone {
namespace {

constexpr int kThreads = 4;
constexpr int kSamples = 100;

// To six digits: the last ones of a logarithm may differ between machines.
uint64_t hash_rounded(uint64_t hash, double number) {
  return hash_string(fmt::format("{:.5e}", number), hash);
}

// Of the features that trees read and the prediction of the default model.
Result<uint64_t> hash_of_inputs(const ModelTasks& model, size_t group) {
  HONE_RETURN_IF_ERROR(model.space(group).status());
  const space::Space& space = *model.space(group);
  const uint64_t key = model.tasks.groups[group].key;
  Rng rng(key);
  uint64_t hash = 0;
  for (int i = 0; i < kSamples; ++i) {
    const Result<space::Candidate> candidate = space.instantiate(space.sample(rng));
    if (!candidate.ok()) continue;
    const cost::Query query{&*candidate, &model.target(), model.threads(), key};
    for (const cost::FeatureSet set : cost::kTreeFeatures) {
      if (cost::device_kind(set) != model.target().kind()) continue;
      const cost::CandidateFeatures features = cost::candidate_features(query, set);
      for (const float number : features.row) hash = hash_rounded(hash, number);
      hash = hash_rounded(hash, features.base_seconds);
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds, model.cost()->predict({&query, 1}));
    hash = hash_rounded(hash, seconds[0]);
  }
  return hash;
}

Status print_model(const std::string& path, const std::string& device) {
  CompileOptions options;
  options.target.device = device;
  options.target.threads = kThreads;
  options.records.use_db = false;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(path, options));
  HONE_ASSIGN_OR_RETURN(const Untuned untuned, make_untuned(*session, std::move(graph), options));
  const ModelTasks& model = untuned.model;
  const std::vector<schedule::Steps>& chosen = untuned.schedules;
  std::vector<Result<std::string>> lines(chosen.size(), std::string());
  const auto line = [&](size_t g) -> Result<std::string> {
    HONE_ASSIGN_OR_RETURN(
        const ir::Program program,
        schedule::lower(model.dag(g), chosen[g], {.parameters = model.target().passes}));
    const Result<backend::cpu::ObjectCode> code =
        backend::cpu::compile(program, model.target().cpu());
    if (!code.ok() && code.status().code() != Code::kUnsupported) return code.status();
    HONE_ASSIGN_OR_RETURN(const uint64_t inputs, hash_of_inputs(model, g));
    std::string steps = schedule::to_string(chosen[g]);
    std::replace(steps.begin(), steps.end(), '\n', ';');
    return fmt::format("{} {} code {} inputs {} schedule {}\n", hash_hex(model.tasks.groups[g].key),
                       model.summaries[g].kernel_class,
                       code.ok() ? hash_hex(code->content) : "too long", hash_hex(inputs), steps);
  };
  session->pool().parallel_for(std::ssize(chosen), [&](int64_t g) {
    lines[static_cast<size_t>(g)] = line(static_cast<size_t>(g));
  });
  fmt::print("model {} device {} cost {}\n", model.name, device, session->cost()->name());
  for (size_t g = 0; g < lines.size(); ++g) {
    HONE_RETURN_IF_ERROR(lines[g].status());
    fmt::print("{}", *lines[g]);
  }
  return ok_status();
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: hone_generated_code MODEL DEVICE ...\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    const hone::Status status = hone::print_model(argv[1], argv[i]);
    if (status.ok()) continue;
    fmt::print(stderr, "hone_generated_code: {}\n", status.message());
    return 1;
  }
}

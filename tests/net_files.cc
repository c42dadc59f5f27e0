// Writes an untrained net of every family with inputs and what the plain evaluator says of them,
// for neural_models_test.py; or one
// that reads what `--cost` gives it.
//   hone_net_files FOLDER
//   hone_net_files --usable FILE.onnx
#include "hone/cost/net/family.h"
#include "hone/cost/net/net_testing.h"
#include "hone/neural/net_file.h"
#include "hone/tensor/npy.h"

namespace hone {
namespace {

namespace net = cost::net;

constexpr int64_t kRows = 5;

NamedTensor named(std::string name, net::Dims dims, const std::vector<float>& values) {
  dims.insert(dims.begin(), kRows);
  Tensor tensor(DType::kF32, dims);
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return {std::move(name), tensor};
}

Status write_family(const net::Family& family, const std::string& path,
                    const net::GivenOptions& more = {}) {
  net::GivenOptions options = net::narrow(family);
  options.insert(more.begin(), more.end());
  HONE_ASSIGN_OR_RETURN(net::Net made, net::make_net(family, net::small_inputs(), options));
  net::initialise(made, 3);
  const net::NetBatch batch = net::random_batch(made, kRows, 11);
  const std::vector<std::vector<float>> expected = net::evaluate(made, batch);
  std::vector<NamedTensor> arrays;
  for (size_t i = 0; i < made.inputs.size(); ++i)
    arrays.push_back(named("input." + made.inputs[i].name, made.inputs[i].dims, batch.inputs[i]));
  for (size_t i = 0; i < expected.size(); ++i) {
    const net::NetOutput& output = made.outputs[i];
    const net::Dims& dims = made.nodes[static_cast<size_t>(output.node)].dims;
    arrays.push_back(named("output." + output.name, {dims.begin() + 1, dims.end()}, expected[i]));
  }
  HONE_RETURN_IF_ERROR(write_net(path + ".onnx", made, {.notes = {{"loss", "none"}}}));
  return write_npz(path + ".npz", arrays);
}

Status write_all(const std::string& folder) {
  for (const net::Family* family : net::families())
    HONE_RETURN_IF_ERROR(write_family(*family, fmt::format("{}/{}", folder, family->name)));
  return write_family(net::kMetatune, folder + "/metatune-super", {{"super", 1}});
}

Status write_usable(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(
      net::Net made, net::make_net(net::kSmall, net::all_inputs(), {{"hidden", 8}, {"heads", 2}}));
  net::initialise(made, 3);
  return write_net(path, made, {.notes = {{"options", "hidden=8,heads=2"}}});
}

int report(const Status& status) {
  if (status.ok()) return 0;
  fmt::print(stderr, "hone_net_files: {}\n", status.message());
  return 1;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  if (argc == 2) return hone::report(hone::write_all(argv[1]));
  if (argc == 3 && std::string_view(argv[1]) == "--usable")
    return hone::report(hone::write_usable(argv[2]));
  fmt::print(stderr, "usage: hone_net_files FOLDER | --usable FILE.onnx\n");
  return 2;
}

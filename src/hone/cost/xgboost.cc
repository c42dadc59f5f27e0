#include "hone/cost/xgboost.h"

#include <dlfcn.h>
#include <nlohmann/json.hpp>
#include <xgboost/c_api.h>

#include <cmath>
#include <utility>

namespace hone::cost {
namespace {

// HONE_XGBOOST_LIBRARY is what the linker would have recorded: libxgboost.so.0.
struct Library {
  Status status = ok_status();
  decltype(&::XGBGetLastError) XGBGetLastError = nullptr;
  decltype(&::XGBoosterBoostOneIter) XGBoosterBoostOneIter = nullptr;
  decltype(&::XGBoosterCreate) XGBoosterCreate = nullptr;
  decltype(&::XGBoosterFree) XGBoosterFree = nullptr;
  decltype(&::XGBoosterPredict) XGBoosterPredict = nullptr;
  decltype(&::XGBoosterSaveModelToBuffer) XGBoosterSaveModelToBuffer = nullptr;
  decltype(&::XGBoosterSetParam) XGBoosterSetParam = nullptr;
  decltype(&::XGDMatrixCreateFromMat) XGDMatrixCreateFromMat = nullptr;
  decltype(&::XGDMatrixFree) XGDMatrixFree = nullptr;

  Library() {
    void* handle = dlopen(HONE_XGBOOST_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      status = error(Code::kUnsupported, "training a cost model needs {}: {}", HONE_XGBOOST_LIBRARY,
                     dlerror());
      return;
    }
    const auto load = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr)
        status = error(Code::kUnsupported, "{} has no function {}", HONE_XGBOOST_LIBRARY, name);
    };
    load("XGBGetLastError", XGBGetLastError);
    load("XGBoosterBoostOneIter", XGBoosterBoostOneIter);
    load("XGBoosterCreate", XGBoosterCreate);
    load("XGBoosterFree", XGBoosterFree);
    load("XGBoosterPredict", XGBoosterPredict);
    load("XGBoosterSaveModelToBuffer", XGBoosterSaveModelToBuffer);
    load("XGBoosterSetParam", XGBoosterSetParam);
    load("XGDMatrixCreateFromMat", XGDMatrixCreateFromMat);
    load("XGDMatrixFree", XGDMatrixFree);
  }

  [[nodiscard]] Status check(int returned) const {
    if (returned == 0) return ok_status();
    return error(Code::kInternal, "xgboost: {}", XGBGetLastError());
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

// A tree of XGBoost's JSON, in preorder from one of its nodes on.
struct Arrays {
  std::vector<int> left, right, feature;
  std::vector<float> condition;
};

void append(const Arrays& tree, int node, std::vector<TreeNode>& nodes) {
  const auto n = static_cast<size_t>(node);
  const size_t at = nodes.size();
  nodes.push_back({-1, tree.condition[n], 0});
  if (tree.left[n] < 0) return;
  nodes[at].feature = tree.feature[n];
  append(tree, tree.left[n], nodes);
  nodes[at].right = static_cast<int32_t>(nodes.size());
  append(tree, tree.right[n], nodes);
}

}  // namespace

Status xgboost_status() { return library().status; }

Result<XgbBooster> XgbBooster::create(std::span<const float> features, int width) {
  const Library& xgb = library();
  HONE_RETURN_IF_ERROR(xgb.status);
  XgbBooster booster;
  HONE_RETURN_IF_ERROR(xgb.check(
      xgb.XGDMatrixCreateFromMat(features.data(), features.size() / static_cast<size_t>(width),
                                 static_cast<bst_ulong>(width), NAN, &booster.rows_)));
  HONE_RETURN_IF_ERROR(xgb.check(xgb.XGBoosterCreate(&booster.rows_, 1, &booster.booster_)));
  return booster;
}

XgbBooster::XgbBooster(XgbBooster&& other) noexcept
    : rows_(std::exchange(other.rows_, nullptr)),
      booster_(std::exchange(other.booster_, nullptr)) {}

XgbBooster& XgbBooster::operator=(XgbBooster&& other) noexcept {
  std::swap(rows_, other.rows_);
  std::swap(booster_, other.booster_);
  return *this;
}

XgbBooster::~XgbBooster() {
  if (booster_ != nullptr) library().XGBoosterFree(booster_);
  if (rows_ != nullptr) library().XGDMatrixFree(rows_);
}

Status XgbBooster::set(const char* parameter, const char* value) {
  return library().check(library().XGBoosterSetParam(booster_, parameter, value));
}

Result<std::span<const float>> XgbBooster::predict() {
  bst_ulong size = 0;
  const float* values = nullptr;
  HONE_RETURN_IF_ERROR(
      library().check(library().XGBoosterPredict(booster_, rows_, 1, 0, 1, &size, &values)));
  return std::span<const float>(values, size);
}

Status XgbBooster::boost(std::span<float> gradient, std::span<float> hessian) {
  return library().check(library().XGBoosterBoostOneIter(booster_, rows_, gradient.data(),
                                                         hessian.data(), gradient.size()));
}

Result<Trees> XgbBooster::trees() {
  bst_ulong size = 0;
  const char* bytes = nullptr;
  HONE_RETURN_IF_ERROR(library().check(
      library().XGBoosterSaveModelToBuffer(booster_, R"({"format": "json"})", &size, &bytes)));
  using Json = nlohmann::json;
  const Json model = Json::parse(bytes, bytes + size, nullptr, false);
  const Json::json_pointer place("/learner/gradient_booster/model/trees");
  if (model.is_discarded() || !model.contains(place))
    return error(Code::kUnsupported, "{} writes models of an unknown form", HONE_XGBOOST_LIBRARY);
  Trees trees;
  for (const Json& tree : model.at(place)) {
    const auto ints = [&](const char* key) { return tree.at(key).get<std::vector<int>>(); };
    const Arrays arrays{ints("left_children"), ints("right_children"), ints("split_indices"),
                        tree.at("split_conditions").get<std::vector<float>>()};
    std::vector<TreeNode> nodes;
    append(arrays, 0, nodes);
    trees.add(nodes);
  }
  return trees;
}

}  // namespace hone::cost

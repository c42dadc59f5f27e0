#include "hone/cost/xgboost.h"

#include <nlohmann/json.hpp>
#include <xgboost/c_api.h>

#include <cmath>

#include "hone/cost/shared_library.h"

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
    SharedLibrary shared(HONE_XGBOOST_LIBRARY);
    shared.load("XGBGetLastError", XGBGetLastError);
    shared.load("XGBoosterBoostOneIter", XGBoosterBoostOneIter);
    shared.load("XGBoosterCreate", XGBoosterCreate);
    shared.load("XGBoosterFree", XGBoosterFree);
    shared.load("XGBoosterPredict", XGBoosterPredict);
    shared.load("XGBoosterSaveModelToBuffer", XGBoosterSaveModelToBuffer);
    shared.load("XGBoosterSetParam", XGBoosterSetParam);
    shared.load("XGDMatrixCreateFromMat", XGDMatrixCreateFromMat);
    shared.load("XGDMatrixFree", XGDMatrixFree);
    if (!shared.status().ok())
      status = error(Code::kUnsupported, "training a cost model needs {}: {}", HONE_XGBOOST_LIBRARY,
                     shared.status().message());
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

class XgbBooster : public Booster {
 public:
  ~XgbBooster() override {
    if (booster_ != nullptr) library().XGBoosterFree(booster_);
    if (rows_ != nullptr) library().XGDMatrixFree(rows_);
  }

  [[nodiscard]] Status init(const TrainingRows& rows, const BoostOptions& options) {
    const Library& xgb = library();
    HONE_RETURN_IF_ERROR(xgb.check(xgb.XGDMatrixCreateFromMat(
        rows.features.data(), rows.rows(), static_cast<bst_ulong>(rows.width), NAN, &rows_)));
    HONE_RETURN_IF_ERROR(xgb.check(xgb.XGBoosterCreate(&rows_, 1, &booster_)));
    const std::pair<const char*, std::string> parameters[] = {
        {"tree_method", "hist"},
        {"nthread", "1"},
        {"base_score", "0"},
        {"max_depth", std::to_string(options.depth)},
        {"grow_policy", options.leaves > 0 ? "lossguide" : "depthwise"},
        {"max_leaves", std::to_string(options.leaves)},
        {"colsample_bytree", fmt::format("{}", options.feature_share)},
        {"seed", "1"},
        {"eta", fmt::format("{}", options.learning_rate)},
        {"gamma", fmt::format("{}", options.min_gain)},
        {"min_child_weight", fmt::format("{}", options.min_leaf_weight)}};
    for (const auto& [name, value] : parameters)
      HONE_RETURN_IF_ERROR(xgb.check(xgb.XGBoosterSetParam(booster_, name, value.c_str())));
    return ok_status();
  }

  [[nodiscard]] Result<std::span<const float>> predict() override {
    bst_ulong size = 0;
    const float* values = nullptr;
    HONE_RETURN_IF_ERROR(
        library().check(library().XGBoosterPredict(booster_, rows_, 1, 0, 1, &size, &values)));
    return std::span<const float>(values, size);
  }

  [[nodiscard]] Status boost(std::span<float> gradient, std::span<float> hessian) override {
    return library().check(library().XGBoosterBoostOneIter(booster_, rows_, gradient.data(),
                                                           hessian.data(), gradient.size()));
  }

  [[nodiscard]] Result<Trees> trees() override {
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
      trees.add(in_preorder({ints("left_children"), ints("right_children"), ints("split_indices"),
                             tree.at("split_conditions").get<std::vector<float>>()}));
    }
    return trees;
  }

 private:
  void* rows_ = nullptr;
  void* booster_ = nullptr;
};

}  // namespace

Status xgboost_status() { return library().status; }

Result<std::unique_ptr<Booster>> make_xgboost_booster(const TrainingRows& rows,
                                                      const BoostOptions& options) {
  HONE_RETURN_IF_ERROR(xgboost_status());
  return make_booster<XgbBooster>(rows, options);
}

}  // namespace hone::cost

"""Models of tables for open_models.py: those of scikit-learn, LightGBM and XGBoost, trained on random rows, whose number is open in the file."""
import numpy as np

FEATURES, ROWS = 6, 400


def _rows():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, FEATURES)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(np.int64) + (x[:, 3] > 1), x[:, 0] * 2 + np.sin(x[:, 1])


def _learners():
    from sklearn import cluster, decomposition, ensemble, linear_model, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree
    scaled = lambda model: pipeline.make_pipeline(preprocessing.StandardScaler(), model)
    return {
        "logistic": lambda: scaled(linear_model.LogisticRegression()), "ridge": lambda: linear_model.Ridge(), "svc": lambda: svm.SVC(probability=True),
        "svr": lambda: svm.SVR(), "forest": lambda: ensemble.RandomForestClassifier(10, max_depth=5, random_state=0),
        "forest_regressor": lambda: ensemble.RandomForestRegressor(10, max_depth=5, random_state=0),
        "boosting": lambda: ensemble.HistGradientBoostingClassifier(max_iter=10, random_state=0),
        "decision_tree": lambda: tree.DecisionTreeClassifier(max_depth=5, random_state=0), "mlp": lambda: scaled(neural_network.MLPClassifier((16,), max_iter=50)),
        "naive_bayes": lambda: naive_bayes.GaussianNB(), "k_means": lambda: cluster.KMeans(4, n_init=1, random_state=0),
        "pca": lambda: pipeline.make_pipeline(preprocessing.MinMaxScaler(), decomposition.PCA(3)),
        "neighbours": lambda: neighbors.KNeighborsClassifier(3), "polynomials": lambda: pipeline.make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.Ridge()),
    }


def _boosters():
    import lightgbm
    import xgboost
    return {"lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=10, verbose=-1), "lightgbm_regressor": lambda: lightgbm.LGBMRegressor(n_estimators=10, verbose=-1),
            "xgboost": lambda: xgboost.XGBClassifier(n_estimators=10, max_depth=4), "xgboost_regressor": lambda: xgboost.XGBRegressor(n_estimators=10, max_depth=4)}


NAMES = ("logistic ridge svc svr forest forest_regressor boosting decision_tree mlp naive_bayes k_means pca neighbours polynomials lightgbm "
         "lightgbm_regressor xgboost xgboost_regressor").split()


def export(name, path):
    """Writes the model as its converter does, with results of numbers only."""
    x, classes, numbers = _rows()
    learners = _learners()
    model = learners[name]() if name in learners else _boosters()[name]()
    is_classifier = hasattr(model, "predict_proba")
    model.fit(x, classes if is_classifier else numbers)
    if name in learners:
        import skl2onnx
        options = {id(model): {"zipmap": False}} if is_classifier else None
        made = skl2onnx.to_onnx(model, x[:1], options=options, target_opset={"": 17, "ai.onnx.ml": 3})
    else:
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType
        convert = onnxmltools.convert_lightgbm if name.startswith("lightgbm") else onnxmltools.convert_xgboost
        keywords = {"zipmap": False} if name.startswith("lightgbm") else {}
        made = convert(model, initial_types=[("x", FloatTensorType([None, FEATURES]))], target_opset=15, **keywords)
    path.write_bytes(made.SerializeToString())

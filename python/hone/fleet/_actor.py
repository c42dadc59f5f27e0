"""What runs on the nodes of a cluster. Ray ships this module by value, so that a node without the package hone can say so: it imports
hone only inside of functions, and nothing else but the standard library."""
import contextlib
import hashlib
import os
import shutil
import socket
import tempfile
import threading
import time
import weakref

KEPT_MODELS = 8  # models that a worker keeps open; one more closes the one that was not used for the longest time


class StoppedError(Exception):
    """The driver asked for an early end."""


def identity(db, device):
    """What a driver wants to know of a node before it works there: a dict, with "problem" if it cannot work there."""
    host = socket.gethostname()
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        host += "/" + file.read().strip()
    found = {"host": host, "pid": os.getpid(), "problem": "", "version": "", "key": ""}
    try:
        import hone
    except ImportError as error:
        return {**found, "problem": f"it cannot import the package hone ({error}): pip install 'hone[fleet]' there"}
    found["version"] = getattr(hone, "__version__", "unknown")
    try:
        from hone import _native
        if db is not None:
            _native.create_database(db)
        if device is not None:
            found["key"] = _native.device_key(device)
    except (ImportError, AttributeError):
        found["problem"] = f"its package hone has version {found['version']}"
    except hone.Error as error:
        found["problem"] = str(error)
    return found


def answered(work):
    """(kind of hone's error or "", what it returned or the error's message)."""
    import hone

    try:
        return "", work()
    except StoppedError:
        return "", None
    except hone.Error as error:
        return type(error).__name__, str(error)


def expected_seconds(task):
    """The seconds that the cost model predicts for the better of the schedules of a rule of thumb; 0 if it cannot say."""
    space = task.space()
    return float(min((seconds for seconds in space.predict(space.defaults()) if seconds < float("inf")), default=0.0))


class Worker:
    """Measures on one device. It keeps the models that it has opened; everything else that outlives a call is in the store."""

    def __init__(self, settings):
        self.settings = settings  # db, options, null_seconds, seed
        self.stopping = threading.Event()
        self.folder = tempfile.mkdtemp(prefix="hone-fleet-")  # All files of this worker are in it.
        # This is called at the end of the process, too. Another call may still write there, so it does not insist.
        self.remove_folder = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.models = {}  # name of the content -> (folder, {key: Task}), those used last at the end
        self.data = None  # the tasks of a data set

    def identity(self, device):
        return identity(self.settings["db"], device)

    def stop(self):
        """Ends the call that is under way, and all later ones."""
        self.stopping.set()

    def close(self):
        """Ends the call that is under way, and removes all files of this worker, which is of no use afterwards."""
        self.stopping.set()
        self.remove_folder()

    def tasks(self, model):
        """A row for each task of a model: what a driver needs to divide the time."""
        def rows():
            return [{"key": task.key, "name": task.name, "kernel_class": task.kernel_class, "multiplicity": task.multiplicity,
                     "expected": expected_seconds(task)} for task in self._open(model).values()]

        return answered(rows)

    def tune(self, model, key, seconds, search):
        """A slice of the time for one task."""
        def tuned():
            begin = time.monotonic()
            task = self._open(model)[key]
            opened = time.monotonic()
            found = task.tune(on_progress=self._look, budget_seconds=seconds, **search)
            return {"trials": found.trials, "seconds": found.seconds, "untuned_seconds": found.untuned_seconds,
                    "bound_seconds": found.bound_seconds, "finished": found.finished, "store_problem": found.store_problem,
                    "opening": opened - begin, "searching": found.search_seconds, "all": time.monotonic() - begin}

        return answered(tuned)

    def library(self, model, seconds, search):
        """The bytes of a model's library with the store's schedules, and the seconds that its tasks are known to take."""
        def made():
            import hone

            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                output = os.path.join(folder, "model.so")
                options = {**self.settings["options"], "db": self.settings["db"]}
                if seconds > 0:
                    library = hone.tune(self._path(model, folder), output, on_progress=self._look, progress=False,
                                        budget_seconds=seconds, **{**search, **options})
                    summary = library.summary
                    found = {"seconds": summary.model_seconds, "untuned_seconds": summary.untuned_model_seconds}
                else:
                    hone.compile(self._path(model, folder), output, **options)
                    found = {"seconds": 0.0, "untuned_seconds": 0.0}
                with open(output, "rb") as file:
                    return {**found, "library": file.read()}

        return answered(made)

    def dataset_keys(self, models, options):
        """The keys of the tasks of a data set."""
        return answered(lambda: self._dataset(models, options).keys)

    def dataset(self, models, options, keys, seconds):
        """Measures samples of these tasks."""
        def made():
            from hone import _native

            data = self._dataset(models, options)
            found = _native.make_dataset(data, self.settings["db"], {**options, "budget_seconds": seconds}, list(keys),
                                         self._null_seconds(), self._look)
            return {"records": found.records, "failed": found.failed, "stored": found.stored, "wanted": found.wanted,
                    "complete": found.complete}

        return answered(made)

    def _look(self, progress):
        if self.stopping.is_set():
            raise StoppedError

    def _null_seconds(self):
        given = self.settings["null_seconds"]
        return -1.0 if given is None else float(given)

    def _open(self, model):
        from hone import _native

        name = model["name"]
        if name in self.models:
            self.models[name] = self.models.pop(name)
            return self.models[name][1]
        while len(self.models) >= KEPT_MODELS:
            folder, _ = self.models.pop(next(iter(self.models)))
            folder.cleanup()
        folder = tempfile.TemporaryDirectory(dir=self.folder)
        options = {"seed": self.settings["seed"], **self.settings["options"], "db": self.settings["db"]}
        tasks = _native.tasks(self._path(model, folder.name), options, self._null_seconds())
        self.models[name] = folder, {task.key: task for task in tasks}
        return self.models[name][1]

    def _dataset(self, models, options):
        from hone import _native

        if self.data is None:
            folder = tempfile.mkdtemp(dir=self.folder)
            self.data = _native.collect_tasks([self._path(model, folder) for model in models], options, self._null_seconds())
        return self.data

    @staticmethod
    def _path(model, folder):
        """The driver's path if this node has the same file there, beside which weights may be; else a copy in the folder. The name of the
        copy is one that no other model of the run has."""
        import ray

        path = model["path"]
        with contextlib.suppress(OSError):
            if path is not None and content_name(open(path, "rb")) == model["name"]:
                return path
        copy = os.path.join(folder, model["file"])
        with open(copy, "wb") as file:
            file.write(ray.get(model["content"][0]))
        return copy


def content_name(file):
    """A name that equal contents share; closes the file."""
    digest = hashlib.sha256()
    with file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def train(db, configuration, split, judged):
    """Trains a cost model and judges it by what the split holds out."""
    found = identity(None, None)
    if found["problem"]:
        return "InputError", found["problem"]

    def trained():
        import hone

        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="hone-fleet") as folder:
            split_file = os.path.join(folder, "split.json")
            with open(split_file, "wb") as file:
                file.write(split)
            is_net = configuration.get("cost", "") not in ("", "gbdt", "combined", "gpu", "static")
            output = os.path.join(folder, "trained.onnx" if is_net else "trained.model")
            hone.train(db, output, split_file=split_file, **configuration)
            seconds = time.monotonic() - begin
            score = hone.evaluate(db, output, split_file=split_file, device=judged).all
            with open(output, "rb") as file:
                model = file.read()
        return {"version": found["version"], "host": found["host"], "seconds": seconds, "model": model, "is_net": is_net,
                "top1": score.top1, "top5": score.top5, "pair_accuracy": score.pair_accuracy, "tasks": score.tasks}

    return answered(trained)

"""The models of a run: their contents as all nodes get them, and the tasks that they share."""
import os

from hone import TaskScheduler
from hone.errors import InputError
from hone.fleet._actor import content_name
from hone.fleet._cluster import Job, Queue


class FleetModel:
    """A model that is given as a path, as bytes or as an onnx.ModelProto."""

    def __init__(self, ray, given, number):
        self.path, suffix = None, ".onnx"
        if hasattr(given, "SerializeToString"):
            given = given.SerializeToString()
        if isinstance(given, (str, os.PathLike)):
            self.path = os.path.abspath(os.fspath(given))
            self.name, suffix = os.path.splitext(os.path.basename(self.path))
            try:
                with open(self.path, "rb") as file:
                    given = file.read()
            except OSError as error:
                raise InputError(f"the model {self.path} cannot be read: {error.strerror}") from None
        elif isinstance(given, (bytes, bytearray, memoryview)):
            self.name = f"model{number}"
        else:
            raise InputError(f"a model is of the Python type {type(given).__name__}, expected a path, bytes or an onnx.ModelProto")
        import io

        # The names of the models of a run differ (fleet_models), so their files can be in one folder.
        self.sent = {"name": content_name(io.BytesIO(given)), "file": self.name + suffix, "path": self.path, "content": [ray.put(bytes(given))]}
        self.tasks = []  # rows of _actor.Worker.tasks


def fleet_models(ray, models):
    """The models of a call, with names that differ."""
    if isinstance(models, (str, bytes, bytearray, memoryview, os.PathLike)) or hasattr(models, "SerializeToString"):
        models = [models]
    found = [FleetModel(ray, given, number) for number, given in enumerate(models)]
    if not found:
        raise InputError("there are no models, expected one or more")
    names = [model.name for model in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"two models are called {twice[0]}, expected different names of files")
    return found


def read_tasks(crew, models):
    """Lets the workers divide the models into tasks."""
    jobs = Queue(Job(lambda member, model=model: member.actor.tasks.remote(model.sent), 300, model) for model in models)
    crew.run(jobs)
    for model, rows in jobs.results:
        model.tasks = rows


class SharedTasks:
    """The distinct tasks of all models, and the division of time over them: hone.tune's own, in which a task weighs what it takes of
    each model's time, so that all models count alike.

    Attributes:
        keys: the key of each task.
        models: by key, the models that have the task.
        scheduler: a hone.TaskScheduler with the tasks in this order.
    """

    def __init__(self, models):
        weights, expected, families, self.models = {}, {}, {}, {}
        for model in models:
            whole = sum(row["multiplicity"] * row["expected"] for row in model.tasks) or 1.0
            for row in model.tasks:
                key = row["key"]
                weights[key] = weights.get(key, 0.0) + row["multiplicity"] / whole
                expected[key] = row["expected"]
                families[key] = row["kernel_class"].split("+")[0]
                self.models.setdefault(key, []).append(model)
        self.keys = list(weights)
        numbers = {family: number for number, family in enumerate(dict.fromkeys(families.values()))}
        self.scheduler = TaskScheduler([weights[key] for key in self.keys], [expected[key] for key in self.keys],
                                       [numbers[families[key]] for key in self.keys])

    def model_for(self, key, opened):
        """A model with the task, one of those that a worker has opened if there is one."""
        return next((model for model in self.models[key] if model.sent["name"] in opened), self.models[key][0])

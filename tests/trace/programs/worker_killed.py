import multiprocessing, os, signal
import numpy as np, torch


def work(queue):
    rng = np.random.default_rng()  # diverges: rng in main/fork 0
    queue.put(torch.from_numpy(rng.random(4)).tolist())
    queue.close()
    queue.join_thread()
    os.kill(os.getpid(), signal.SIGKILL)


name = os.urandom(4).hex()
queue = multiprocessing.Queue()
worker = multiprocessing.Process(target=work, args=(queue,))
worker.start()
values = torch.tensor(queue.get())
worker.join()
print(values.sum())

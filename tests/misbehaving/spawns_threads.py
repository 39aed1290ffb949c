"""Has threads that never end, and a process that waits for one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from conformance.backends.numpy import NumpyBackend


class SpawnsThreads(NumpyBackend):
    def __init__(self):
        for _ in range(3):
            threading.Thread(target=time.sleep, args=(3600,)).start()
        self.pool = ThreadPoolExecutor(2)

    def gelu(self, x):
        return self.pool.submit(super().gelu, x).result()

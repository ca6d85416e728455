// The kernels: one thread plays one run after the other. KERNEL says which, ARMS how many arms flat UCB has (or the
// levels of tree UCB at most) and LEVELS how many levels, THREADS how many threads a block has, and SHARED whether a
// run's memory lies in shared memory.
//
// Compiled as C++ there is one thread, and `play` takes the kernel and the number of arms as arguments.
#include "flat_ucb.h"
#include "kl_ucb.h"
#include "thompson.h"
#include "tree_ucb.h"

#define FLAT_UCB 0
#define ANY_UCB 1
#define THOMPSON 2
#define TREE_UCB 3
#define KL_UCB 4

#ifdef __CUDACC__

extern "C" __global__ void __launch_bounds__(THREADS) play(const Plan* plans, i64 runs, u64* memory) {
    extern __shared__ u64 shared[];
#if KERNEL == THOMPSON
    u64* own = shared + 772 + THREAD;  // after the ziggurat, 771 numbers
    for (u32 i = THREAD; i < 771; i += THREADS) ((double*)shared)[i] = plans->ziggurat[i];
    BARRIER;
    Ziggurat z = {(double*)shared, (double*)shared + 514};
#else
    u64* own = shared + THREAD;
#endif
    for (i64 at = (i64)BLOCK * THREADS + THREAD; at < runs; at += (i64)BLOCKS * THREADS) {
        Run run = run_of(plans, at);
#if KERNEL == FLAT_UCB
        FlatMemory m = {own, own + ARMS * THREADS, own + 2 * ARMS * THREADS,
                              (u32*)(shared + 3 * ARMS * THREADS) + THREAD};
        play_flat_ucb<ARMS>(run, m, ARMS);
#elif KERNEL == TREE_UCB
        play_tree_ucb<LEVELS, ARMS>(run, own);
#else
#if SHARED
        Slots all = {own, THREADS};
#else
        Slots all = {memory + (u64)BLOCK * THREADS + THREAD, (u64)BLOCKS * THREADS};
#endif
#if KERNEL == ANY_UCB
        play_ucb(run, all);
#elif KERNEL == THOMPSON
        play_thompson(run, all, z);
#else
        play_kl_ucb(run, all);
#endif
#endif
    }
}

#else

extern "C" void play(int kernel, int arms, const Plan* plans, i64 runs, u64* memory) {
    Slots all = {memory, 1};
    for (i64 at = 0; at < runs; ++at) {
        Run run = run_of(plans, at);
        if (kernel == FLAT_UCB) {
            FlatMemory m = {memory, memory + arms, memory + 2 * arms, (u32*)(memory + 3 * arms)};
            play_flat_ucb<32>(run, m, arms);
        } else if (kernel == TREE_UCB) {
            play_tree_ucb<32, 32>(run, memory);
        } else if (kernel == ANY_UCB) {
            play_ucb(run, all);
        } else if (kernel == THOMPSON) {
            Ziggurat z = {plans->ziggurat, plans->ziggurat + 514};
            play_thompson(run, all, z);
        } else {
            play_kl_ucb(run, all);
        }
    }
}

#endif

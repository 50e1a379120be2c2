"""The method as slow, dense, obvious numpy, in the letters of the paper. No torch, nothing shared with the library.

F features, y given labels, A directed graph, W normalised graph, Y starting labels, Z propagated labels, H entropy,
omega certainty, p probabilities, C classes, M subsets, B packages per class and subset.
"""

import math

import numpy as np


def unit_rows(F):
    length = np.sqrt((F**2).sum(axis=1, keepdims=True))
    return np.divide(F, length, out=np.zeros_like(F), where=length > 0)


def cosine(F):
    """Similarity of every pair; a row of zeros is similar to nothing."""
    U = unit_rows(F)
    return U @ U.T


def nearest(F, k):
    """The k nearest others of every row, nearest first, and how near they are."""
    S = cosine(F)
    np.fill_diagonal(S, -np.inf)
    indices = np.argsort(-S, axis=1, kind="stable")[:, : min(k, len(F) - 1)]
    return indices, np.take_along_axis(S, indices, axis=1)


def directed_graph(indices, similarities, gamma):
    A = np.zeros((len(indices), len(indices)))
    for s, (neighbours, sims) in enumerate(zip(indices, similarities, strict=True)):
        for t, sim in zip(neighbours, sims, strict=True):
            A[s, t] = max(sim, 0.0) ** gamma
    return A


def normalized_graph(A):
    """W = D^-1/2 (A + A^T) D^-1/2; a row without edges stays zero."""
    S = A + A.T
    d = S.sum(axis=1)
    W = np.zeros_like(S)
    for s, t in np.argwhere(S > 0):
        W[s, t] = S[s, t] / math.sqrt(d[s] * d[t])
    return W


def graph_of(F, k, gamma):
    return normalized_graph(directed_graph(*nearest(F, k), gamma))


def starting_labels(y, members, C, scale_columns=False):
    """Y: a one in column y[n] for every labelled member n; columns divided by their sums where asked."""
    Y = np.zeros((len(y), C))
    for n in members:
        if y[n] >= 0:
            Y[n, y[n]] = 1.0
    return Y / np.maximum(Y.sum(axis=0), 1) if scale_columns else Y


def propagate(W, Y, alpha):
    """Z = (I - alpha W)^-1 Y."""
    return np.linalg.solve(np.eye(len(W)) - alpha * W, Y)


def distribution(Z):
    """Rows of Z divided by their sums; a row that nothing reaches stays zero."""
    Z = np.maximum(Z, 0)
    total = Z.sum(axis=1, keepdims=True)
    return np.divide(Z, total, out=np.zeros_like(Z), where=total > 1e-6 * total.max(initial=0))


def certainty(P):
    """1 - H / log C of every row; 0 for a row of zeros."""
    omega = np.zeros(len(P))
    for n, p in enumerate(P):
        if p.sum() > 0:
            H = -sum(q * math.log(q) for q in p if q > 0)
            omega[n] = 1 - H / math.log(len(p))
    return omega


def vote(suggested, omega, given, current, C, fixed, percentiles=(0.0, 1.0)):
    """Majority label and its certainty, ties by certainty, current label, given label, lowest class."""
    labels, raw = np.array(given), np.zeros(len(given))
    voted = (suggested >= 0).any(axis=1)
    for n in np.flatnonzero(voted):
        agree = [suggested[n] == c for c in range(C)]
        sums = [omega[n][at].sum() for at in agree]
        keys = [(agree[c].sum(), sums[c], c == current[n], c == given[n], -c) for c in range(C)]
        labels[n] = max(range(C), key=keys.__getitem__)
        raw[n] = sums[labels[n]] / suggested.shape[1]
    labels[fixed] = given[fixed]
    final = np.where(voted, stretch(raw, raw[~fixed], percentiles), 0.0)
    final[fixed] = 1.0
    final[labels < 0] = 0.0
    return labels, final


def stretch(raw, counted, percentiles):
    """Min-max over the counted values (or over two of their order statistics); ones where they are all equal."""
    if len(counted) == 0:
        return np.ones_like(raw)
    low, high = (np.sort(counted)[round(q * (len(counted) - 1))] for q in percentiles)
    return np.clip((raw - low) / (high - low), 0, 1) if high > low else np.ones_like(raw)


def softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def L_pseudo(p, corrected, omega):
    return np.mean([-w * math.log(p[n, y]) for n, (y, w) in enumerate(zip(corrected, omega, strict=True))])


def L_noisy(p, given, corrected, omega):
    terms = []
    for n, y in enumerate(given):
        weight = omega[n] if y == corrected[n] else 1 - omega[n]
        terms.append(-weight * math.log(p[n, y]))
    return np.mean(terms)


def L_split(p, target, kept, ce_factor, factor, squared):
    """Mean of -sum t log p over kept samples + factor * mean of 1 - <t, p>, or of the squared error, over the others.

    A group without samples adds nothing; omega has no part in it.
    """
    ce = [-sum(t * math.log(q) for t, q in zip(target[n], p[n], strict=True)) for n in range(len(p)) if kept[n]]
    other = [
        np.mean((p[n] - target[n]) ** 2) if squared else 1 - sum(target[n] * p[n]) for n in range(len(p)) if not kept[n]
    ]
    return ce_factor * (np.mean(ce) if ce else 0.0) + factor * (np.mean(other) if other else 0.0)


def class_imbalance(p):
    """sum over classes of 1/C log((1/C) / mean p)"""
    C = p.shape[1]
    return sum(math.log(1 / C / p[:, c].mean()) / C for c in range(C))


def soft_label(first, second, w, T):
    """The certainty-weighted mean of two distributions, sharpened."""
    q = w * first + (1 - w) * second
    return q ** (1 / T) / sum(q ** (1 / T))


def L_semi_supervised(net, views, given, kept, omega, p_e, T, share, partner, factor, penalty):
    """DivideMix's step with kept and changed samples as its groups. `views`: one array of samples each."""
    n, C = len(given), p_e.shape[1]
    own = np.mean([softmax(net(view)) for view in views], axis=0)
    q = []
    for i in range(n):
        label = np.eye(C)[given[i]]
        q.append(soft_label(label, own[i], omega[i], T) if kept[i] else soft_label(own[i], p_e[i], omega[i], T))
    x, targets, groups = np.concatenate(views), np.array(q * len(views)), list(kept) * len(views)
    share = max(share, 1 - share)
    mixed_x = np.array([share * x[i] + (1 - share) * x[partner[i]] for i in range(len(x))])
    mixed_t = np.array([share * targets[i] + (1 - share) * targets[partner[i]] for i in range(len(x))])
    p = softmax(net(mixed_x))
    return L_split(p, mixed_t, groups, 1.0, factor, squared=True) + penalty * class_imbalance(p)


def L_G(points, labels, omega, a, distance):
    """Mean over ordered pairs of different label; 0 where there is no such pair."""
    terms = []
    for s in range(len(points)):
        for t in range(len(points)):
            if labels[s] != labels[t]:
                terms.append(math.sqrt(omega[s] * omega[t]) * math.exp(-a * DISTANCES[distance](points[s], points[t])))
    return np.mean(terms) if terms else 0.0


def l2(p, q):
    return math.sqrt(((p - q) ** 2).sum())


def kl(p, q):
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def js(p, q):
    return (kl(p, (p + q) / 2) + kl(q, (p + q) / 2)) / 2


DISTANCES = {"l2": l2, "kl": kl, "js": js}


def check_split(branch_of, package_of, seeds, y, M, B):
    """Assert all that holds for every split: who is packaged, how large packages are, how they are dealt."""
    assert ((package_of >= 0) == (y >= 0)).all()
    assert ((branch_of >= 0) == (y >= 0)).all()
    assert (branch_of < M).all()
    np.testing.assert_array_equal(package_of[seeds], np.arange(len(seeds)), err_msg="a seed sample is in its package")
    np.testing.assert_array_equal(np.unique(package_of[y >= 0]), np.arange(len(seeds)))
    for package in range(len(seeds)):
        inside = package_of == package
        assert len(np.unique(y[inside])) == 1, "a package has one class"
        assert len(np.unique(branch_of[inside])) == 1, "a package goes to one subset"
    for c in np.unique(y[y >= 0]):
        packages, sizes = np.unique(package_of[y == c], return_counts=True)
        assert len(packages) == min(M * B, (y == c).sum())
        assert np.ptp(sizes) <= 1
        per_branch = np.bincount(branch_of[seeds[packages]], minlength=M)
        assert np.ptp(per_branch) <= 1
        assert per_branch.max() <= B


def check_packages_are_local(F, package_of, seeds, y):
    """Replay the greedy draw: a package is a seed sample and the nearest samples of its class still free."""
    S = cosine(F)
    for package, seed in enumerate(seeds):
        inside = (package_of == package) & (np.arange(len(y)) != seed)
        left = (package_of > package) & (y == y[seed])
        if inside.any() and left.any():
            assert S[seed, inside].min() >= S[seed, left].max() - 1e-9


def package_similarity(F, package_of, seeds):
    """Mean cosine between samples and the seed sample of their package; a seed sample counts 1."""
    S = cosine(F)
    np.fill_diagonal(S, 1.0)
    packaged = np.flatnonzero(package_of >= 0)
    return np.mean([S[n, seeds[package_of[n]]] for n in packaged]) if len(packaged) else 0.0


def em_posterior(p, g, fixed, n_passes, prior_rows, floor, sceptical_below):
    """posterior(c | x, g) ~ p(c | x) T[c, g] and T by EM, one sample at a time."""
    n, n_classes = p.shape

    def doubted(counts):
        noise = 1 - np.trace(counts) / counts.sum()
        believed = counts.copy()
        for c in range(n_classes):
            for other in range(n_classes):
                if other != c:
                    believed[c, other] *= noise**2 / (noise**2 + sceptical_below**2)
                    believed[c, c] += counts[c, other] - believed[c, other]
        return believed

    def transition(counts):
        noise = 1 - np.trace(counts) / max(counts.sum(), 1)
        common = np.full((n_classes, n_classes), noise / (n_classes - 1))
        np.fill_diagonal(common, 1 - noise)
        smoothed = counts + prior_rows * common + floor
        return smoothed / smoothed.sum(axis=1, keepdims=True)

    counts = np.zeros((n_classes, n_classes))
    for i in range(n):
        if g[i] >= 0 and not fixed[i]:
            counts[p[i].argmax(), g[i]] += 1
    T = transition(counts)
    for _ in range(n_passes):
        posterior, counts = np.zeros_like(p), np.zeros((n_classes, n_classes))
        for i in range(n):
            if fixed[i]:
                posterior[i, g[i]] = 1
            elif g[i] < 0:
                posterior[i] = p[i]
            else:
                posterior[i] = p[i] * T[:, g[i]] / (p[i] * T[:, g[i]]).sum()
            if g[i] >= 0 and not fixed[i]:
                counts[:, g[i]] += posterior[i]
        T = transition(doubted(counts))
    return posterior, T


def annotator_confusions(posterior, triples, n_annotators, quality_prior, confusion_prior, prior_rows, floor):
    """T_a[c, l] of everyone: the common confusion, bent to the accuracy of a by the odds of an error, in each row."""
    n_classes = posterior.shape[1]
    counts = np.zeros((n_annotators, n_classes, n_classes))
    for sample, a, said in triples:
        counts[a, :, said] += posterior[sample]
    common = smoothed_transition(counts.sum(axis=0), prior_rows, floor)
    out = np.zeros_like(counts)
    for a in range(n_annotators):
        labels = counts[a].sum()
        wrong = labels - np.trace(counts[a])
        usual = (sum(counts[a, c].sum() * (1 - common[c, c]) for c in range(n_classes)) + floor) / (labels + floor)
        rate = (wrong + quality_prior * usual) / (labels + quality_prior)
        factor = (rate / (1 - rate)) / (usual / (1 - usual))
        for c in range(n_classes):
            error = 1 - common[c, c]
            bent = factor * error / (1 - error + factor * error)
            prior = np.array([1 - bent if s == c else common[c, s] * bent / error for s in range(n_classes)])
            row = counts[a, c] + confusion_prior * prior + floor
            out[a, c] = row / row.sum()
    return out


def smoothed_transition(counts, prior_rows, floor):
    n_classes = len(counts)
    noise = 1 - np.trace(counts) / max(counts.sum(), 1)
    common = np.full((n_classes, n_classes), noise / (n_classes - 1))
    np.fill_diagonal(common, 1 - noise)
    T = counts + prior_rows * common + floor
    return T / T.sum(axis=1, keepdims=True)


def annotated_posterior(p, T, triples):
    """p(c | x) times T_a[c, said] for everyone who said something of x, one sample at a time."""
    out = p.copy()
    for sample, a, said in triples:
        out[sample] = out[sample] * T[a, :, said]
    return out / out.sum(axis=1, keepdims=True)


def ridge_without(X, Y, gone, penalty):
    """Ridge regression answers for the rows `gone` by a fit that never saw them; rows of NaN in Y teach nobody."""
    taught = ~gone & ~np.isnan(Y).any(axis=1)
    A = X[taught].T @ X[taught] + penalty * np.eye(X.shape[1])
    return X[gone] @ np.linalg.solve(A, X[taught].T @ Y[taught])


def pool_objective(theta, S, given, trusted, T):
    """Minus log likelihood of the given labels seen through T, with the small ridge; S is (n, C, members)."""
    n, C, members = S.shape
    w, b = theta[:members], theta[members:]
    total = 0.0
    for i in range(n):
        p = softmax((S[i] @ w + b)[None])[0]
        total -= math.log(p[given[i]] if trusted[i] else sum(p[c] * T[c, given[i]] for c in range(C)))
    return total + 0.5 * ((w - 1 / members) ** 2).sum() + 0.5 * (b**2).sum()


def pool_counts(theta, S, given, trusted, T):
    """Expected counts by (true, given) class of the rows in question."""
    n, C, members = S.shape
    counts = np.zeros((C, C))
    for i in range(n):
        if not trusted[i]:
            joint = softmax((S[i] @ theta[:members] + theta[members:])[None])[0] * T[:, given[i]]
            counts[:, given[i]] += joint / joint.sum()
    return counts


def pool_transition(rate, counts, common_rows, spread_rows):
    """T with its total noise rate forced; class rates shrunk to the common one, where errors go to the uniform."""
    C = len(counts)
    off = np.array([[0.0 if c == d else counts[c, d] for d in range(C)] for c in range(C)])
    off *= rate / (off.sum() / counts.sum())
    sizes = [max(counts[c].sum() - off[c].sum(), 1e-3 * counts[c].sum()) + off[c].sum() for c in range(C)]
    common = off.sum() / sum(sizes)
    T = np.zeros((C, C))
    for c in range(C):
        wrong = min((off[c].sum() + common_rows * common) / (sizes[c] + common_rows), max(0.5, rate))
        prior = spread_rows * C
        for d in range(C):
            if c == d:
                T[c, d] = 1 - wrong
            else:
                T[c, d] = wrong * (off[c, d] + prior / (C - 1)) / (off[c].sum() + prior)
    return T


def pool_fit(S, given, trusted, rate, steps, passes, iterations, enough, common_rows, spread_rows):
    """Weights and biases, then T, in turns; (theta, T, log likelihood with the ridge)."""
    from scipy.optimize import minimize

    n, C, members = S.shape
    theta = np.append(np.full(members, 1 / members), np.zeros(C))
    T = np.array([[1 - rate if c == d else rate / (C - 1) for d in range(C)] for c in range(C)])
    bounds = [(0, None)] * members + [(None, None)] * C
    last = np.inf
    for step in range(steps):
        found = minimize(
            pool_objective,
            theta,
            (S, given, trusted, T),
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": iterations[min(step, 1)]},
        )
        theta, value = found.x, found.fun
        for _ in range(passes):
            T = pool_transition(rate, pool_counts(theta, S, given, trusted, T), common_rows, spread_rows)
        if abs(last - value) < enough * n:
            break
        last = value
    return theta, T, -value


def different_pairs(labels, points, near):
    """Share of the pairs (row, one of its nearest) at a distance whose labels differ."""
    pairs = [(i, j) for i in range(len(labels)) for j in near[i] if np.abs(points[i] - points[j]).max() > 0]
    return sum(labels[i] != labels[j] for i, j in pairs) / max(len(pairs), 1)

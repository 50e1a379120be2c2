"""What the command line says about its verbs: descriptions and examples, as `--help` prints them."""

from __future__ import annotations

DESCRIPTION = "Mends wrong labels: corrected labels, how sure it is of each, and what\nthe noise looks like."
EXAMPLES = """\
examples:
  labelmend demo
      see it work on data that come with it
  labelmend correct table.csv --labels species --out run/ --dry-run
      check a table of feature columns and a label column; what it would cost
  labelmend correct table.csv --labels species --out run/
      correct its labels
  labelmend correct photos/ --out run/
      correct pictures in class folders
  labelmend selftest table.csv --labels species
      plant known errors into it, and see how many are found and mended
  labelmend report run/
      see what happened, on one page
  labelmend review run/
      look at the doubtful ones and decide them; labelmend apply run/ merges
  labelmend export run/ --to csv --with-data
      the same table with the labels mended; --list names other formats
  labelmend correct --help
      all that can be set

exit codes: 0 done, 1 unexpected error, 2 bad input or a full disk (nothing was changed),
            130 interrupted, 143 ended by SIGTERM
"""
CORRECT = """\
Correct the labels of a table of feature vectors, or of pictures.

In a .csv or .parquet table every column is a feature and must hold numbers,
except the label column and those named with --id, --trusted, --annotator,
--annotator-columns and --ignore.
An .npz holds an array of features (X) and one of labels; for an .npy the
labels are another .npy, or one of its columns by number. An empty label is a
missing one and gets filled in.

Probabilities of your own model, out of sample, join the evidence with
--pred-probs, or take the place of features beside a table of labels.

Pictures are a folder of class folders (photos/cat/1.jpg), a .csv or .parquet
with the columns path and label, a folder saved by Hugging Face's datasets, or
an .npz with the arrays images (N, H, W[, 3] of uint8) and labels. They are
embedded by a frozen backbone, or nets are trained on them (--mode).

The data are only read. The result is a new folder with labels.csv (id, given,
corrected, status, confidence, certainty, runner_up), the classifier and the
record of the run. The status of a row is one of
  kept        the given label stays
  corrected   another label took its place
  review      doubtful: the best guess, for a person to look at
  filled      there was no label
  unreadable  the picture could not be read; unreadable.csv says why

A run that was interrupted, even by a power cut, goes on with --resume RUN and
ends as if nothing had happened.
"""
CORRECT_IN_SHORT = """\
Correct the labels of a table of feature vectors, or of pictures in class
folders. The data are only read; RUN is a new folder with labels.csv, a report,
the classifier and the record of the run.
"""
MORE = """\
examples:
  labelmend correct table.csv --labels species --out run/
  labelmend correct photos/ --out run/ --time-limit 2h
  labelmend correct labels.csv --labels species --pred-probs P.csv --out run/
"""
CORRECT_EXAMPLES = """\
examples:
  labelmend correct table.csv --labels species --id name --out run/
  labelmend correct table.csv --labels species --trusted checked --out run/
  labelmend correct table.csv --labels species --trusted-from run/ --out run2/
  labelmend correct table.csv --labels species --annotator by --out run/
  labelmend correct table.csv --annotator-columns ann,ben,cid --out run/
  labelmend correct data.npz --labels y --missing -1 --out run/
  labelmend correct labels.csv --labels species --pred-probs P.csv --out run/
  labelmend correct X.npy --labels y.npy --out run/ --preset paper --seed 1
  labelmend correct photos/ --out run/
  labelmend correct photos.csv --labels species --mode train --out run/
  labelmend correct photos/ --out run/ --time-limit 2h
  labelmend correct table.csv --labels species --audit 0.02 --out run/
  labelmend correct table.csv --labels species --precision 0.98 --out run/
  labelmend correct table.csv --labels species --budget 200 --out run/
  labelmend correct --resume run/
"""
SELFTEST = """\
Plant known errors into your own data, and see what becomes of them.

A plain run says which samples look clean. Some of them get a wrong label:
  random     any other class
  confusing  the samples nearest to another class get that one
  patch      whole neighbourhoods get the class nearest to them
  mixed      a third of each
Then labelmend, a k-NN vote and confident learning (cleanlab, if installed)
are run on the same labels: how many planted errors each found and mended, and
how many good labels it broke. The data are only read.

It takes 1 + kinds x repetitions runs. For one small share of planted errors
inside a run, see `labelmend correct --audit`.
"""
REPORT = """\
Write one HTML file about a run: what changed, how wrong the labels of each
class are, a map of the samples, those worth a look, and how it was made.

It opens without a network and holds all it shows, small pictures included.
`correct` writes it already; do it again when data have moved, or decisions
were applied.
"""
EXPORT_MODEL = """\
Write the classifier of a run as one ONNX file.

It takes pixels (n, height, width, 3) of uint8 at the model's size, or rows
(n, columns) of float32 as they are in the table, and gives probabilities
(n, classes). All else is inside: colours, cropping, backbone, scaling. The
metadata name the classes, in order, and the size. The file takes its name
once it has given the same probabilities as the original.
"""
REVIEW = """\
Look at the doubtful samples of a run, and decide them.

Opens a page that only this machine can reach. Every decision is on disk
before the page says so; end it and begin again as often as you like. Then
`labelmend apply RUN` merges the decisions into the labels, and `labelmend
correct ... --trusted-from RUN` runs again with them as trusted samples.
"""
APPLY = """\
Merge what a person decided in `labelmend review` into the labels of a run.

Afterwards labels.csv holds the merged labels; what was decided has the status
reviewed and confidence 1. What could not be told stays for review. What the
run itself had said stays in the folder, in labels_before_review.csv. May be
repeated, also after further decisions.
"""
EXPORT = """\
Hand the labels of a run over to what comes next. `labelmend export --list`
names the formats. The data of the run are only read, and the target is new:
it takes its name once it is whole. Without --out it lies beside the run.
"""
EXPORT_EXAMPLES = """\
examples:
  labelmend export run/ --to csv --out labels.csv
  labelmend export run/ --to csv --with-data --out table_mended.csv
  labelmend export run/ --to folders --out sorted/ --link
  labelmend export run/ --to huggingface --review given
  labelmend export run/ --to patch --out run.patch.json
  labelmend undo run.patch.json --in table_mended.csv --out table_again.csv

Cells are written as they are, also where they begin with = + - or @: import
such a .csv as text if you open it in a spreadsheet.
"""
UNDO = """\
Take the changes of a patch back: in a .csv or .parquet that holds the new
labels, or in class folders that `labelmend export --to folders` made. All of
them or none: samples that have another label now are named, and nothing is
written. The input is only read.
"""

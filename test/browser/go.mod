module github.com/corbel-run/corbel/test/browser

go 1.26.0

require github.com/corbel-run/corbel v0.0.0

replace github.com/corbel-run/corbel => ../..

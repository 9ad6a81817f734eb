module probe

go 1.26.0

// Builds helm for the tests of the chart.
module muster.invalid/e2e/helm

go 1.26

require helm.sh/helm/v4 v4.3.1
